/**
 * Slack's refusals. They come with status 200 and `"ok": false`; their error word decides whether the call may be repeated,
 * and when.
 */
import { AppError, type ErrorCode } from '@sluice/sdk'

/** Every call fails until the operator changes a token, the app or the workspace. */
const FORBIDDEN = new Set([
  'account_inactive',
  'app_uninstalled',
  'ekm_access_denied',
  'enterprise_is_restricted',
  'forbidden_team',
  'invalid_auth',
  'link_disabled',
  'not_allowed_token_type',
  'not_authed',
  'org_login_required',
  'socket_mode_not_enabled',
  'team_access_not_granted',
  'token_expired',
  'token_revoked',
  'two_factor_setup_required',
])
/** The call was not done; a later one may succeed. */
const TEMPORARY: Readonly<Record<string, ErrorCode>> = {
  ratelimited: 'rate_limited',
  rate_limited: 'rate_limited',
  external_channel_migrating: 'unavailable',
  team_added_to_org: 'unavailable',
}
/** Slack's documentation says of these: "it's possible some aspect of the operation succeeded". */
const UNCERTAIN = new Set(['fatal_error', 'internal_error', 'request_timeout', 'service_unavailable'])

/** Whether the request may have been done although Slack reports a failure. */
export const isUncertain = (word: string | undefined): boolean => word !== undefined && UNCERTAIN.has(word)

/**
 * Builds the error for a refusal with Slack's word, such as `channel_not_found`. `tokenKey` names the token in the hint for
 * the operator.
 */
export function refusal(method: string, word: string, tokenKey: string, retryAfterSecs: number | undefined): AppError {
  const code = codeOf(word)
  const hint = code === 'forbidden' || word === 'missing_scope' ? ` (are ${tokenKey} and its scopes right?)` : ''
  const options = { cause: { word }, ...(retryAfterSecs !== undefined && { retryAfterSecs }) }
  return new AppError(code, `slack answered ${word} to ${method}${hint}`, options)
}

/** The message that a thread hangs on is gone, or takes no replies. */
const THREAD_GONE = new Set(['thread_not_found', 'cannot_reply_to_message', 'message_not_found'])
/** Slack cannot show the blocks. */
const BAD_BLOCKS = new Set(['invalid_blocks', 'invalid_blocks_format', 'msg_blocks_too_long'])

const wordOf = (error: unknown): string => (error instanceof AppError && (error.cause as { word?: string } | undefined)?.word) || ''
export const isThreadGone = (error: unknown): boolean => THREAD_GONE.has(wordOf(error))
export const isBadBlocks = (error: unknown): boolean => BAD_BLOCKS.has(wordOf(error))

/** A word in none of the lists means that the call itself is wrong. */
function codeOf(word: string): ErrorCode {
  if (UNCERTAIN.has(word)) return 'upstream'
  return TEMPORARY[word] ?? (FORBIDDEN.has(word) ? 'forbidden' : 'invalid_request')
}
