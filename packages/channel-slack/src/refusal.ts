/** What Slack's `"ok": false` means: it comes with status 200, and its word decides whether the call may be repeated. */
import { AppError, type ErrorCode } from '@sluice/sdk'

/** What a token, the app or the workspace would have to be changed for: every call is refused until then. */
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
/** Not done, and done when asked later. */
const PASSING: Readonly<Record<string, ErrorCode>> = {
  ratelimited: 'rate_limited',
  rate_limited: 'rate_limited',
  external_channel_migrating: 'unavailable',
  team_added_to_org: 'unavailable',
}
/** Slack does not know either, says its documentation: "it's possible some aspect of the operation succeeded". */
const UNKNOWN = new Set(['fatal_error', 'internal_error', 'request_timeout', 'service_unavailable'])

/** Whether the request may have been done although Slack says that it failed. */
export const mayBeDone = (word: string | undefined): boolean => word !== undefined && UNKNOWN.has(word)

/** Everything else is wrong with the call itself. */
function codeOf(word: string): ErrorCode {
  if (UNKNOWN.has(word)) return 'upstream'
  return PASSING[word] ?? (FORBIDDEN.has(word) ? 'forbidden' : 'invalid_request')
}

export interface Refused {
  readonly method: string
  /** Slack's word, such as `channel_not_found`. */
  readonly word: string
  /** The key of the token it was called with. */
  readonly tokenKey: string
  readonly retryAfterSecs: number | undefined
}

export function refusal({ method, word, tokenKey, retryAfterSecs }: Refused): AppError {
  const code = codeOf(word)
  const hint = code === 'forbidden' || word === 'missing_scope' ? ` (are ${tokenKey} and its scopes right?)` : ''
  return new AppError(code, `slack answered ${word} to ${method}${hint}`, retryAfterSecs === undefined ? {} : { retryAfterSecs })
}
