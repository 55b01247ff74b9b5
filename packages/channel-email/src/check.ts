/** Tries both servers for `sluice doctor`: the logins, and the headers that vouch for senders. Changes and sends nothing. */
import { AppError, errorText, type Finding, type Host } from '@sluice/sdk'
import { isTrustedServer } from './authentication.ts'
import type { Credentials } from './credentials.ts'
import { bodyIn } from './fetch-mail.ts'
import { parseHeaders } from './headers.ts'
import type { Imap } from './imap.ts'
import { openFolder } from './mailbox.ts'
import { connect } from './send.ts'
import type { Settings } from './settings.ts'
import { LoginRefused } from './smtp.ts'

interface Parts {
  readonly host: Host
  readonly settings: Settings
  readonly credentials: Credentials
}

/** How many of the latest mails are looked at. */
const LATEST = 10
const HEADERS = 'HEADER.FIELDS (AUTHENTICATION-RESULTS)'

export const checkMailbox = async (parts: Parts, signal: AbortSignal): Promise<readonly Finding[]> => [
  ...(await checkImap(parts, signal)),
  await checkSmtp(parts, signal),
]

async function checkImap({ host, settings, credentials }: Parts, signal: AbortSignal): Promise<readonly Finding[]> {
  const where = `${settings.imap.host}:${settings.imap.port}`
  try {
    const { imap, folder } = await openFolder(host, settings, credentials, signal)
    try {
      const login: Finding = { status: 'ok', detail: `email: the folder ${settings.folder} on ${where} opens` }
      return [login, ...(await checkHeaders(imap, folder.uidNext, settings))]
    } finally {
      imap.logOut()
    }
  } catch (error) {
    return [{ status: 'fail', detail: `email: ${errorText(error)}`, fix: fixFor(error, 'imap') }]
  }
}

async function checkHeaders(imap: Imap, uidNext: number, { policy: { authservIds } }: Settings): Promise<readonly Finding[]> {
  if (authservIds.length === 0) return []
  const uids = (await imap.search(`UID ${Math.max(1, uidNext - LATEST)}:*`)).slice(-LATEST)
  const tops: (string | undefined)[] = []
  for (const uid of uids) {
    const fetched = await imap.fetch(uid, `BODY.PEEK[${HEADERS}]`)
    const bytes = fetched && bodyIn(fetched, HEADERS)
    if (bytes) tops.push(parseHeaders(bytes)('authentication-results')[0])
  }
  if (tops.length === 0) return []
  const trusted = tops.filter((top) => top !== undefined && isTrustedServer(top, authservIds)).length
  if (trusted > 0)
    return [{ status: 'ok', detail: `email: ${trusted} of the latest ${tops.length} mails have Authentication-Results of authserv_id` }]
  return [
    {
      status: 'warn',
      detail: `email: none of the latest ${tops.length} mails has Authentication-Results of authserv_id, so no entry of allowed_senders counts`,
      fix: 'look at the topmost Authentication-Results header of a mail, and set authserv_id to the name at its beginning',
    },
  ]
}

async function checkSmtp({ host, settings, credentials }: Parts, signal: AbortSignal): Promise<Finding> {
  const where = `${settings.smtp.host}:${settings.smtp.port}`
  try {
    const smtp = await connect(host, settings, credentials, signal)
    smtp.quit()
    return { status: 'ok', detail: `email: ${where} ${settings.smtpLogin === 'none' ? 'answers, without a login' : 'accepts the login'}` }
  } catch (error) {
    return { status: 'fail', detail: `email: ${errorText(error)}`, fix: fixFor(error, 'smtp') }
  }
}

const fixFor = (error: unknown, kind: 'imap' | 'smtp'): string =>
  error instanceof LoginRefused || (error instanceof AppError && error.code === 'forbidden')
    ? `correct ${kind === 'smtp' ? 'smtp_username and smtp_password if they are set, else ' : ''}username and password, or the OAuth keys, in [channels_config.email]`
    : `check ${kind}_host, ${kind}_port, ${kind}_security and the network`
