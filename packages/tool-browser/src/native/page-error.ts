/** Converts errors of the Playwright library to errors that the model can act on. */
import { stripVTControlCharacters } from 'node:util'
import { AppError, errorText } from '@sluice/sdk'

const TEXT_CHARS_MAX = 300
/** Parts of the library's messages about a key or selector that the model must correct. */
const WRONG_REQUEST = [
  'Unknown key',
  'is not a valid selector',
  'Unknown engine',
  'Unexpected token',
  'while parsing selector',
  'while parsing css selector',
]

/** Returns an `AppError` as it is, and any other error as `invalid_request`, `upstream_timeout` or `upstream`. */
export function pageError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const [firstLine = ''] = stripVTControlCharacters(errorText(error)).split('\n')
  const text = firstLine.replace(/^\w+\.\w+: /, '').slice(0, TEXT_CHARS_MAX)
  if (WRONG_REQUEST.some((part) => text.includes(part))) return new AppError('invalid_request', text)
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new AppError('upstream_timeout', `${text} Take a snapshot to see what is there.`)
  }
  return new AppError('upstream', text, { cause: error })
}
