/** The open id of the bot, by which messages mention it. */
import { textAt } from '@sluice/kit/foreign-json'
import { AppError } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'

const QUICK_MS = 2000

/** Throws `forbidden` for wrong credentials and for an app without a bot. */
export async function botOpenId(api: WorkchatApi, signal: AbortSignal, timeoutMs?: number): Promise<string> {
  const answer = await api
    .call({ method: 'GET', path: '/bot/v3/info', signal, ...(timeoutMs !== undefined && { timeoutMs }) })
    .catch((error: unknown) => {
      const isWrong = error instanceof AppError && ['invalid_request', 'forbidden'].includes(error.code)
      throw isWrong ? new AppError('forbidden', error.message) : error
    })
  const id = textAt(answer, 'bot.open_id')
  if (id === '') throw new AppError('forbidden', 'workchat named no bot of the app: turn its bot on, and publish a version of the app')
  return id
}

/** Asks once, and again after a failure. A webhook has to answer within three seconds, so the wait is short. */
export function rememberBot(api: WorkchatApi): () => Promise<string> {
  let known: Promise<string> | undefined
  return () => {
    const asked = known ?? botOpenId(api, new AbortController().signal, QUICK_MS)
    known = asked
    asked.catch(() => {
      if (known === asked) known = undefined
    })
    return asked
  }
}
