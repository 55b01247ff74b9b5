/** What a sidecar answered, as text. */

import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, withoutSecrets } from '@sluice/sdk'
import type { ActionName } from '../actions.ts'

const ERROR_CHARS_MAX = 300

export interface SidecarAnswer {
  readonly ok: boolean
  readonly status: number
  readonly body: string
}

/** Throws `upstream` for a failure, in the sidecar's own words but for the secrets. */
export function sidecarReply(action: ActionName, { ok, status, body }: SidecarAnswer, secrets: readonly string[]): string {
  const parsed = parsedOrUndefined(body)
  const reply = members(parsed)
  if (!ok || reply.success === false) {
    const why = text(reply.error) || `computer-use sidecar request failed with status ${status}`
    throw new AppError('upstream', withoutSecrets(why, secrets).slice(0, ERROR_CHARS_MAX))
  }
  if (parsed === undefined && body.trim() !== '') return withoutSecrets(body, secrets)
  const shown = reply.data ?? { backend: 'computer_use', action, ok: true }
  return withoutSecrets(typeof shown === 'string' ? shown : JSON.stringify(shown, null, 2), secrets)
}
