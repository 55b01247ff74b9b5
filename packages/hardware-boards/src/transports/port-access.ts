/** What keeps us from a serial port, in words that say what mends it. */
import { constants } from 'node:fs'
import { access, readFile, stat } from 'node:fs/promises'
import { AppError, errorText } from '@sluice/sdk'

const GROUP_MAY = constants.S_IRGRP | constants.S_IWGRP

/** Why the port cannot be read and written, with the group that may; undefined: it can. */
export async function deniedAccess(path: string): Promise<{ readonly detail: string; readonly fix: string } | undefined> {
  try {
    await access(path, constants.R_OK | constants.W_OK)
    return undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { detail: `There is no ${path}`, fix: 'Plug the board in' }
    const group = await groupThatMay(path).catch(() => undefined)
    return group
      ? { detail: `${path} is open to the group ${group} only`, fix: `sudo usermod -aG ${group} $USER, then log in anew` }
      : { detail: `${path} may not be used: ${errorText(error)}`, fix: 'Let the user Sluice runs as read and write it' }
  }
}

/** Turns what serialport says into the error of a caller. */
export async function openError(path: string, cause: unknown): Promise<AppError> {
  const said = errorText(cause)
  if (/lock/i.test(said)) return new AppError('unavailable', `${path} is in use by another program`, { cause, retryAfterSecs: 1 })
  const denied = await deniedAccess(path)
  const why = denied ? `${denied.detail}; ${denied.fix}` : `${path} cannot be opened: ${said.replace(/^Error:?\s*/, '')}`
  return new AppError('unavailable', why, { cause })
}

/** Whom to join to use it; undefined: nobody, or only what comes with all the power there is. */
export async function groupThatMay(path: string): Promise<string | undefined> {
  const { gid, mode } = await stat(path)
  if (gid === 0 || (mode & GROUP_MAY) !== GROUP_MAY) return undefined
  const groups = await readFile('/etc/group', 'utf8')
  const line = groups.split('\n').find((entry) => entry.split(':')[2] === String(gid))
  return line?.split(':')[0]
}
