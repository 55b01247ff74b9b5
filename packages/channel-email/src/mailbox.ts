/** Opens the mailbox: a connection that is encrypted and logged in, with the folder open for reading. */
import { isTokenRefused } from '@sluice/mail-common'
import { AppError, errorText, type Host, withoutSecrets } from '@sluice/sdk'
import type { Credentials, Login } from './credentials.ts'
import { type Folder, Imap } from './imap.ts'
import { ImapRefusal } from './imap-line.ts'
import type { Settings } from './settings.ts'

export interface OpenFolder {
  readonly imap: Imap
  readonly folder: Folder
}

/** Room for the text of a mail around an attachment. */
const TEXT_BYTES = 2_097_152
/** Response codes of refusals that end by themselves (RFC 5530). */
const PASSING = new Set(['UNAVAILABLE', 'INUSE', 'LIMIT', 'SERVERBUG', 'OVERQUOTA'])

/** Base64 has four characters for three bytes, and a line end for 76 of them. */
const transferred = (bytes: number): number => Math.ceil((bytes / 3) * 4 * (78 / 76))

/** The largest answer of the server that is read. */
export const answerBytesMax = (attachmentBytesMax: number): number => transferred(attachmentBytesMax) + TEXT_BYTES

/**
 * Throws `forbidden` if the server refuses the credentials or the folder, so that only the operator can help, and `unavailable` if it
 * cannot be reached. The connection breaks when `signal` aborts.
 */
export async function openFolder(
  { clock }: Pick<Host, 'clock'>,
  settings: Settings,
  credentials: Credentials,
  signal: AbortSignal,
): Promise<OpenFolder> {
  const imap = await Imap.open({ server: settings.imap, clock, bytesMax: answerBytesMax(settings.attachmentBytesMax) }, signal)
  try {
    await logIn(imap, credentials, signal)
    const folder = await imap.examine(settings.folder).catch((error: unknown) => {
      throw asAppError(error, `The IMAP server does not open the folder ${settings.folder}`)
    })
    return { imap, folder }
  } catch (error) {
    imap.destroy()
    throw error
  }
}

async function logIn(imap: Imap, credentials: Credentials, signal: AbortSignal): Promise<void> {
  const login = await credentials.login(signal).catch(asForbidden)
  try {
    await imap.login(login)
  } catch (error) {
    if (!(error instanceof ImapRefusal) || PASSING.has(error.code)) throw refused(error, login)
    const another = await credentials.another(login, signal).catch(asForbidden)
    if (!another) throw refused(error, login)
    await imap.login(another).catch((again: unknown) => {
      throw refused(again, another)
    })
  }
}

const asForbidden = (error: unknown): never => {
  throw isTokenRefused(error) ? new AppError('forbidden', errorText(error)) : error
}

const refused = (error: unknown, { kind, secret }: Login): unknown =>
  asAppError(error, `The IMAP server refuses the login (is the ${kind} valid?)`, [secret.reveal()])

/** Turns a refusal into an error for the operator, and returns any other error unchanged. */
function asAppError(error: unknown, what: string, secrets: readonly string[] = []): unknown {
  if (!(error instanceof ImapRefusal)) return error
  const said = withoutSecrets(error.message.replace(/[^\x20-\x7e]+/g, ' '), secrets)
  return new AppError(PASSING.has(error.code) ? 'unavailable' : 'forbidden', `${what}: ${said}`)
}
