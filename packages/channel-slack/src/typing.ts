/** The status line of a thread, where the app may set one. */
import { AppError, type Channel } from '@sluice/sdk'
import type { SlackApi } from './slack-api.ts'

const STATUS = 'is thinking…'

/** Slack takes it away with the next message, or after two minutes. */
export function createTyping(api: SlackApi): NonNullable<Channel['typing']> {
  let isRefused = false
  return async ({ to, thread }, signal) => {
    if (thread === undefined || isRefused) return
    try {
      await api.call('assistant.threads.setStatus', { channel_id: to, thread_ts: thread, status: STATUS }, { signal })
    } catch (error) {
      // Without the scope for it, it is not asked for again and again.
      if (!(error instanceof AppError) || !['invalid_request', 'forbidden'].includes(error.code)) throw error
      isRefused = true
    }
  }
}
