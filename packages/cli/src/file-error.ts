/** Explains an error of the file system in one sentence, such as a data directory that is a file. */
import { AppError } from '@sluice/sdk'

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left on the device',
  EDQUOT: 'the disk quota is used up',
  ENOTDIR: 'it is not a folder, or something above it is not',
  EISDIR: 'it is a folder',
  ELOOP: 'its symbolic links form a loop',
  ENAMETOOLONG: 'the name is too long',
  EMFILE: 'too many files are open',
  EIO: 'the device reports an input or output error',
}

/** Returns an `unavailable` error with the path, the reason and a cure; undefined if the error is not from the file system. */
export function asFileError(error: unknown, dataDir: string): AppError | undefined {
  if (error instanceof AppError || !(error instanceof Error)) return undefined
  const { code, path, syscall } = error as NodeJS.ErrnoException
  if (code === undefined || path === undefined || syscall === undefined) return undefined
  const reason = syscall === 'mkdir' && code === 'EEXIST' ? 'it exists and is not a folder' : (REASONS[code] ?? error.message)
  const cure = path.startsWith(dataDir) ? '. Correct that, or name another data directory with --data-dir' : ''
  return new AppError('unavailable', `${path} cannot be used: ${reason}${cure}`, { cause: error })
}
