/** The parts that the tools for text files share: their limits, the check for binary files, and the files that others wrote. */
import { isFileOfOthers } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'

export const FILE_BYTES_MAX = 10 * 1024 * 1024
export const CONTENT_CHARS_MAX = 4 * 1024 * 1024
/** The largest answer, which stays below the limit of a tool result so that no line is lost in its middle. */
export const SHOWN_CHARS_MAX = 30_000
const PATH_CHARS_MAX = 4096
/** How far a file is searched for a NUL byte, which text files do not have. */
const SNIFFED_BYTES = 8192

export const pathInput = (description: string) =>
  v.pipe(v.string(), v.minLength(1), v.maxLength(PATH_CHARS_MAX), v.description(description))

/** A PDF is seldom written by the user. */
export const isFromOthers = (path: string): boolean => isFileOfOthers(path) || /\.pdf$/i.test(path)

export const isBinary = (bytes: Uint8Array): boolean => bytes.subarray(0, SNIFFED_BYTES).includes(0)

/** The first bytes of PNG, JPEG and GIF. */
const PICTURES = ['\x89PNG\r\n\x1a\n', '\xff\xd8\xff', 'GIF87a', 'GIF89a']

/** Whether a file is a picture that models read. */
export function isPicture(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1')
  return PICTURES.some((start) => head.startsWith(start)) || (head.startsWith('RIFF') && head.endsWith('WEBP'))
}

export function refuseBinary(path: string, bytes: Uint8Array): void {
  if (isBinary(bytes)) throw new AppError('invalid_request', `'${path}' is a binary file of ${bytes.length} bytes, not text`)
}

/** Quotes a name that contains line breaks or other invisible characters, so that each entry stays on one line. */
export const onOneLine = (name: string): string => (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name) ? JSON.stringify(name) : name)
