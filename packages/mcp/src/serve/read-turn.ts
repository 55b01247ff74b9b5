/** Reads the answer of a streamed turn to its end. */
import { AppError } from '@sluice/sdk'

/** The last line of a turn. */
type LastFrame =
  | { readonly type: 'done'; readonly full_response: string; readonly turn_id: string; readonly finish_reason: string }
  | { readonly type: 'error'; readonly message: string }
  | { readonly type: string }

export interface TurnResult {
  readonly answer: string
  readonly turn_id: string
  readonly finish_reason: string
}

/** Throws `upstream` for a turn that failed, and `aborted` for one that was aborted. */
export async function readTurn(response: unknown): Promise<TurnResult> {
  if (!(response instanceof Response)) throw new AppError('internal', 'the turn has no answer')
  let last: LastFrame | undefined
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    const line = lines.findLast((text) => text !== '')
    if (line !== undefined) last = JSON.parse(line)
  }
  if (last && 'full_response' in last) return { answer: last.full_response, turn_id: last.turn_id, finish_reason: last.finish_reason }
  if (last && 'message' in last) throw new AppError('upstream', last.message)
  throw new AppError('aborted', 'The turn was aborted')
}
