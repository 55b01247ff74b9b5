/** What keeps a procedure from being loaded, told of the file it is in. */
import type { SopProblem } from './definition.ts'

export interface Told {
  readonly message: string
  readonly line?: number
  readonly column?: number
}

export const asError = (file: string, { message, line, column }: Told): SopProblem => ({
  file,
  ...(line !== undefined && { line }),
  ...(column !== undefined && { column }),
  message,
  severity: 'error',
})
