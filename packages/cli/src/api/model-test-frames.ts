/** Asks for the tests of models, and reads their results as they come. */
import type { ModelTestFrame } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import type { Api } from './api.ts'

/**
 * Yields the frames of `POST /api/models/test`, except for `error`, which it throws. Throws `aborted` when the signal aborts, and `unavailable`
 * when the answer ends before the last result.
 */
export async function* modelTestFrames(
  api: Api,
  body: unknown,
  signal: AbortSignal,
): AsyncGenerator<Exclude<ModelTestFrame, { type: 'error' }>> {
  let last: ModelTestFrame['type'] | undefined
  try {
    for await (const frame of api.lines<ModelTestFrame>('/api/models/test', { method: 'POST', body, signal })) {
      if (frame.type === 'error') throw new AppError(frame.code, frame.message)
      last = frame.type
      yield frame
    }
  } catch (error) {
    throw signal.aborted ? new AppError('aborted', 'The tests were aborted') : error
  }
  if (last !== 'done') throw new AppError('unavailable', 'The daemon ended the connection before the last result')
}
