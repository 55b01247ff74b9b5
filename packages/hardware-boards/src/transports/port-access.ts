/** Explains why a serial port cannot be used, and what the operator can do about it. */
import { constants } from 'node:fs'
import { access, readFile, stat } from 'node:fs/promises'
import { AppError, errorText } from '@sluice/sdk'

const GROUP_READ_WRITE = constants.S_IRGRP | constants.S_IWGRP

/** Returns why the port cannot be read and written, with the cure, or undefined when it can. */
export async function deniedAccess(path: string): Promise<{ readonly detail: string; readonly fix: string } | undefined> {
  try {
    await access(path, constants.R_OK | constants.W_OK)
    return undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { detail: `There is no ${path}`, fix: 'Plug the board in' }
    const group = await groupWithAccess(path).catch(() => undefined)
    return group
      ? { detail: `${path} is open to the group ${group} only`, fix: `sudo usermod -aG ${group} $USER, then log in again` }
      : { detail: `${path} may not be used: ${errorText(error)}`, fix: 'Let the user that runs Sluice read and write it' }
  }
}

/** Turns an error of serialport into the error for the caller. */
export async function openError(path: string, cause: unknown): Promise<AppError> {
  const text = errorText(cause)
  if (/lock/i.test(text)) return new AppError('unavailable', `${path} is in use by another program`, { cause, retryAfterSecs: 1 })
  const denied = await deniedAccess(path)
  const why = denied ? `${denied.detail}; ${denied.fix}` : `${path} cannot be opened: ${text.replace(/^Error:?\s*/, '')}`
  return new AppError('unavailable', why, { cause })
}

/** Returns the group whose members may use the port; undefined without such a group, and for the administrator's group. */
export async function groupWithAccess(path: string): Promise<string | undefined> {
  const { gid, mode } = await stat(path)
  if (gid === 0 || (mode & GROUP_READ_WRITE) !== GROUP_READ_WRITE) return undefined
  const groups = await readFile('/etc/group', 'utf8')
  const line = groups.split('\n').find((entry) => entry.split(':')[2] === String(gid))
  return line?.split(':')[0]
}
