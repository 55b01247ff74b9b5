/** The bot while it is logged in: its device, its rooms and its state. There is one at a time in the process. */
import { text } from '@sluice/kit/foreign-json'
import { AppError, errorText, type Host, type Logger } from '@sluice/sdk'
import { isRefused, MatrixApi } from './api.ts'
import { accountOf, type FedchatConfig, folded, isAllowed } from './config.ts'
import { Device } from './crypto/device.ts'
import { JournaledDatabase } from './crypto/indexed-db.ts'
import { signWithPassword } from './crypto/own-keys.ts'
import { verifyWithRecoveryKey } from './crypto/recovery.ts'
import { Verifications } from './crypto/verifications.ts'
import { DEVICE_RECORD, type DeviceRecord, UNVERIFIED, UNVERIFIED_FIX } from './device-record.ts'
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
  readonly verifications: Verifications
  /** The problems of configured rooms that the bot cannot enter, for the operator, by room. */
  readonly problems: Map<string, string>
  /** Warnings that the log has already, because each connection prepares the device again. */
  readonly warned: Set<string>
  readonly log: Logger
  readonly bot: Bot
  close(): Promise<void>
}

/** Rejects if the homeserver does not accept the bot. `mayWrite` returns false once another process may hold the device. */
export async function openSession(host: Host, config: FedchatConfig, mayWrite: () => boolean, signal: AbortSignal): Promise<Session> {
  // A channel that was built again waits here until the earlier one has released its keys.
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
      nameOf: (room, user) => rooms.nameOf(room, user),
      pressed: (message, key) => presses.valueOf(message, key),
    }
    const verifications = new Verifications(device, host.log, (user) => folded(user) === folded(identity.userId) || isAllowed(config, user))
    const receipts = new Receipts(api, host.log)
    return {
      api,
      vault,
      identity,
      device,
      rooms,
      presses,
      receipts,
      verifications,
      problems: new Map(),
      warned: new Set(),
      log: host.log,
      bot,
      close,
    }
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

/** Uploads the keys of the device, verifies it with the recovery key or the password, and records what operators see of it. */
export async function prepareDevice(session: Session, config: FedchatConfig, signal: AbortSignal): Promise<void> {
  const { api, device, identity, log, vault } = session
  await device.runOutgoing(signal)
  const key = config.recovery_key?.reveal()
  if (key !== undefined && !(await device.isVerified())) {
    try {
      await verifyWithRecoveryKey(api, device, identity.userId, key, signal)
      log.info('verified the device with the recovery key', { channel: 'fedchat', device: identity.deviceId })
    } catch (error) {
      if (signal.aborted) throw error
      warnOnce(session, 'device not verified with the recovery key', { channel: 'fedchat', reason: errorText(error) })
    }
  }
  if (key === undefined && !(await device.isVerified())) await signDevice(session, config, signal)
  await recordDevice(session)
  await vault.flush()
}

/** Many clients give keys only to devices that their account has signed, so that the bot could not read their messages. */
async function signDevice(session: Session, { password }: FedchatConfig, signal: AbortSignal): Promise<void> {
  const { api, device, identity, log } = session
  const about = { channel: 'fedchat', device: identity.deviceId }
  try {
    if (password !== undefined && (await signWithPassword(api, device, { userId: identity.userId, password }, signal)))
      return void log.info('created the cross-signing keys of the account and signed the device', about)
    warnOnce(session, UNVERIFIED, { ...about, fix: UNVERIFIED_FIX })
  } catch (error) {
    if (signal.aborted) throw error
    warnOnce(session, UNVERIFIED, { ...about, reason: errorText(error), fix: UNVERIFIED_FIX })
  }
}

function warnOnce({ log, warned }: Session, what: string, fields: object): void {
  if (warned.has(what)) return
  warned.add(what)
  log.warn(what, { ...fields })
}

/** Records the fingerprint and whether the account has signed the device. Durable after the next flush of the vault. */
export async function recordDevice({ device, identity, vault }: Session): Promise<void> {
  vault.put(DEVICE_RECORD, {
    user_id: identity.userId,
    device_id: identity.deviceId,
    fingerprint: device.fingerprint,
    is_verified: await device.isVerified(),
  } satisfies DeviceRecord)
}

/** Returns what keeps the bot from its rooms; undefined when nothing does. */
export const problemOf = ({ problems }: Session): string | undefined => [...problems.values()].join('; ') || undefined
