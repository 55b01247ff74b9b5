/** Formats the result of a command for the model. */
import { type SpawnResult, unconfinedNote } from '@sluice/sdk'

/** Joins the parts that are not empty. */
export const joined = (parts: readonly string[]): string =>
  parts
    .map((part) => part.trimEnd())
    .filter((part) => part !== '')
    .join('\n')

/** How a command ended; `limit` names its time limit. */
export function endText(result: Pick<SpawnResult, 'exitCode' | 'signal' | 'timedOut' | 'sandbox'>, limit: string): string {
  const { exitCode, signal, timedOut } = result
  const end = timedOut
    ? `[timed out after ${limit}; it and what it had started were ended]`
    : exitCode === null
      ? `[ended by ${signal}]`
      : `[exit code ${exitCode}]`
  return joined([unconfinedNote(result), end])
}

export const DROPPED = '[a part of the output was dropped: to keep all of it, write it to a file]'

export const resultText = (result: SpawnResult, limit: string): string =>
  joined([result.stdout, result.stderr === '' ? '' : `[stderr]\n${result.stderr}`, result.truncated ? DROPPED : '', endText(result, limit)])
