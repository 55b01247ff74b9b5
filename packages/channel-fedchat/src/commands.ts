/** The commands `sluice fedchat keys` and `sluice fedchat verify`, which run in the daemon while it runs. */
import { AppError, CATALOGUE, type Command, type CommandContext, type Finding, type Host } from '@sluice/sdk'
import type { FedchatConfig } from './config.ts'
import type { Connection } from './connection.ts'
import { readDeviceRecord, UNVERIFIED, UNVERIFIED_FIX } from './device-record.ts'

type CurrentConnection = () => Promise<Connection>

export function fedchatCommands(host: Host, connection: CurrentConnection): Command[] {
  const { commandHelp } = CATALOGUE['channel-fedchat']
  return [
    { name: 'fedchat keys', ...commandHelp['fedchat keys'], run: (context) => showKeys(host, context) },
    { name: 'fedchat verify', ...commandHelp['fedchat verify'], run: (context) => verify(connection, context) },
  ]
}

async function showKeys({ secrets }: Host, { json, print }: CommandContext): Promise<number> {
  const record = await readDeviceRecord(secrets)
  if (!record)
    throw new AppError('not_found', 'The bot has no device yet. It gets one when the channel fedchat connects for the first time.')
  if (json) print(JSON.stringify(record))
  else {
    print(`user         ${record.user_id}`)
    print(`device       ${record.device_id}`)
    print(`fingerprint  ${record.fingerprint}`)
    print(`verified     ${record.is_verified ? 'yes, by cross-signing' : 'no; set recovery_key, or verify the device from another client'}`)
  }
  return 0
}

/** Without arguments, lists the verifications whose emoji the operator can compare. With a user id, asks or takes the decision. */
async function verify(connection: CurrentConnection, { args, json, print, ask, signal }: CommandContext): Promise<number> {
  const [userId, decision] = args
  const verifications = (await connection()).session?.verifications
  if (!verifications) throw new AppError('unavailable', 'The channel fedchat is not connected. Start the daemon, then try again.')
  const shown = verifications.shown()
  if (userId === undefined) {
    if (json) print(JSON.stringify(shown))
    else if (shown.length === 0) print('No verification is under way. Begin one in a client: open the profile of the bot and verify it.')
    else for (const { userId: user, deviceId, emoji } of shown) print(`${user}  ${deviceId}  ${textOf(emoji)}`)
    return 0
  }
  const found = shown.findLast((one) => one.userId === userId && one.emoji.length > 0)
  if (!found) throw new AppError('not_found', `${userId} has not begun a verification, or its emoji are not known yet`)
  print(`${found.deviceId}  ${textOf(found.emoji)}`)
  const answer = decision ?? (await ask?.('Does the person see the same emoji? (yes/no) '))
  if (answer !== 'yes' && answer !== 'no') throw new AppError('invalid_request', 'Add yes or no: sluice fedchat verify <user id> yes')
  await verifications.decide(found.flow, answer === 'yes', signal)
  print(
    answer === 'yes' ? 'Confirmed. The verification is complete when the person has confirmed, too.' : 'The verification was cancelled.',
  )
  return 0
}

const textOf = (emoji: readonly { readonly symbol: string; readonly description: string }[]): string =>
  emoji.length === 0 ? '(keys are being exchanged)' : emoji.map(({ symbol, description }) => `${symbol} ${description}`).join('  ')

/** The rows of `sluice doctor`. Does not open the device, which a daemon may use. */
export async function checkFedchat(
  host: Host,
  { homeserver, recovery_key: recoveryKey }: FedchatConfig,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { MatrixApi } = await import('./api.ts')
  const findings: Finding[] = []
  try {
    await new MatrixApi(host.fetch, homeserver).call({
      method: 'GET',
      path: ['client', 'versions'],
      isAnonymous: true,
      signal,
      timeoutMs: 10_000,
    })
    findings.push({ status: 'ok', detail: `the homeserver ${homeserver} answers` })
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    findings.push({ status: 'fail', detail, fix: 'Correct channels_config.fedchat.homeserver, or start the homeserver.' })
  }
  const record = await readDeviceRecord(host.secrets)
  if (!record) return [...findings, { status: 'ok', detail: 'the bot has no device yet; it gets one when the channel connects' }]
  const { device_id: deviceId, fingerprint, is_verified: isVerified } = record
  const detail = `the device ${deviceId} has the fingerprint ${fingerprint} and is ${isVerified ? 'verified' : 'not verified'}`
  if (isVerified) return [...findings, { status: 'ok', detail }]
  const fix = recoveryKey === undefined ? UNVERIFIED_FIX : 'The recovery key did not verify the device; the log of the daemon says why.'
  return [...findings, { status: 'warn', detail: `${detail}: ${UNVERIFIED}`, fix }]
}
