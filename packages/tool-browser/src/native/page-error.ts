/** What the library threw, as a sentence the model can act on. */
import { stripVTControlCharacters } from 'node:util'
import { AppError, errorText } from '@sluice/sdk'

const TEXT_CHARS_MAX = 300
/** What Playwright says of a key or selector that the model has to write differently. */
const WRONG_REQUEST = [
  'Unknown key',
  'is not a valid selector',
  'Unknown engine',
  'Unexpected token',
  'while parsing selector',
  'while parsing css selector',
]

export function pageError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const [first = ''] = stripVTControlCharacters(errorText(error)).split('\n')
  const text = first.replace(/^\w+\.\w+: /, '').slice(0, TEXT_CHARS_MAX)
  if (WRONG_REQUEST.some((words) => text.includes(words))) {
    return new AppError('invalid_request', text)
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new AppError('upstream_timeout', `${text} Take a snapshot to see what is there.`)
  }
  return new AppError('upstream', text, { cause: error })
}
