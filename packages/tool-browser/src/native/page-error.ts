/** What the library threw, as a sentence the model can act on. */
import { stripVTControlCharacters } from 'node:util'
import { AppError, errorText } from '@sluice/sdk'

const TEXT_CHARS_MAX = 300

export function pageError(error: unknown): AppError {
  if (error instanceof AppError) return error
  const [first = ''] = stripVTControlCharacters(errorText(error)).split('\n')
  const text = first.replace(/^\w+\.\w+: /, '').slice(0, TEXT_CHARS_MAX)
  if (/Unknown key|is not a valid selector|Unknown engine|Unexpected token|parsing .*selector/i.test(text)) {
    return new AppError('invalid_request', text)
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    return new AppError('upstream_timeout', `${text} Take a snapshot to see what is there.`)
  }
  return new AppError('upstream', text, { cause: error })
}
