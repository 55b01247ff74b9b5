/** The bot while it is logged in: its device, its rooms and its state. There is one at a time in the process. */
import { text } from '@sluice/kit/foreign-json'
import { AppError, type Host, type Logger } from '@sluice/sdk'
import { isRefused, MatrixApi } from './api.ts'
import { accountOf, type FedchatConfig } from './config.ts'
import { Device } from './crypto/device.ts'
import { JournaledDatabase } from './crypto/indexed-db.ts'
import { claimVault, type Identity, identify } from './login.ts'
import type { Bot } from './parse.ts'
import { Presses } from './presses.ts'
import { Receipts } from './receipts.ts'
import { Rooms } from './rooms.ts'
import { Vault } from './vault.ts'

export interface Session {
  readonly api: MatrixApi
  readonly vault: Vault
  readonly identity: Identity
  readonly device: Device
  readonly rooms: Rooms
  readonly presses: Presses
  readonly receipts: Receipts
  readonly log: Logger
  readonly bot: Bot
  close(): Promise<void>
}

/** Rejects if the homeserver does not accept the bot. `mayWrite` returns false once another process may hold the device. */
export async function openSession(host: Host, config: FedchatConfig, mayWrite: () => boolean, signal: AbortSignal): Promise<Session> {
  // A channel that was built again waits here until the earlier one has let go of its keys.
  const database = await JournaledDatabase.reserve(`fedchat ${host.dataDir}`)
  const vault = new Vault(host.secrets)
  vault.mayWrite = mayWrite
  let device: Device | undefined
  const close = async (): Promise<void> => {
    await device?.close()
    await vault.flush().catch(() => undefined)
    await database.drop()
  }
  try {
    const api = new MatrixApi(host.fetch, config.homeserver)
    const identity = await identify(api, vault, config, host.log, signal)
    await claimVault(vault, identity, host.log)
    const name = await displayName(api, identity.userId, signal)
    const rooms = await Rooms.load(api, vault, config, host.log)
    const presses = await Presses.load(vault)
    device = await Device.open({ api, vault, log: host.log, database, ...identity })
    const bot: Bot = {
      account: accountOf(config),
      userId: identity.userId,
      name,
      mentionOnly: config.mention_only,
      isDirect: (room) => rooms.isDirect(room),
      pressed: (message, key) => presses.valueOf(message, key),
    }
    return { api, vault, identity, device, rooms, presses, receipts: new Receipts(api, host.log), log: host.log, bot, close }
  } catch (error) {
    await close()
    throw signal.aborted ? new AppError('aborted', 'The channel stopped') : error
  }
}

async function displayName(api: MatrixApi, userId: string, signal: AbortSignal): Promise<string> {
  try {
    return text((await api.client('GET', ['profile', userId, 'displayname'], { signal })).displayname)
  } catch (error) {
    if (isRefused(error, 'M_NOT_FOUND', 'M_FORBIDDEN', 'M_UNRECOGNIZED')) return ''
    throw error
  }
}
