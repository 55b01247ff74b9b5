/** Numbers on the command line. */
import { AppError } from '@sluice/sdk'

/** Throws `invalid_request` for anything but a whole number in these bounds; `what` is what the user wrote it for. */
export function wholeNumber(what: string, text: string, min: number, max: number = Number.MAX_SAFE_INTEGER): number {
  const number = Number(text)
  if (/^\d{1,15}$/.test(text) && number >= min && number <= max) return number
  const bounds = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`
  throw new AppError('invalid_request', `${what} wants a whole number ${bounds}, not '${text}'`)
}
