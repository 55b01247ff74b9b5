/** What goes over `/ws/chat`, both ways: one JSON object a text message. */

/** From the daemon. */
export type ChatFrame =
  | { readonly type: 'session_start'; readonly session_id: string; readonly resumed: boolean; readonly message_count: number }
  | { readonly type: 'chunk' | 'thinking'; readonly content: string }
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly args: unknown }
  | { readonly type: 'tool_result'; readonly id: string; readonly name: string; readonly output: string }
  | {
      readonly type: 'done'
      readonly full_response: string
      readonly turn_id: string
      readonly model: string
      readonly input_tokens: number
      readonly output_tokens: number
      readonly cost_usd: number
    }
  | { readonly type: 'aborted'; readonly turn_id: string | null }
  | {
      readonly type: 'approval_request'
      readonly request_id: string
      readonly tool: string
      readonly arguments_summary: string
      readonly timeout_secs: number
    }
  | { readonly type: 'error'; readonly message: string; readonly code: ChatErrorCode }

export type ChatErrorCode =
  | 'INVALID_JSON'
  | 'UNKNOWN_MESSAGE_TYPE'
  | 'EMPTY_CONTENT'
  | 'INVALID_APPROVAL_RESPONSE'
  | 'SESSION_QUEUE_FULL'
  | 'TOO_LARGE'
  | 'AUTH_ERROR'
  | 'PROVIDER_ERROR'
  | 'AGENT_ERROR'

/** From the client; `invalid` is what is answered to everything else. */
export type ClientFrame =
  | { readonly type: 'message'; readonly content: string }
  | { readonly type: 'abort' }
  | { readonly type: 'approval_response'; readonly requestId: string; readonly approved: boolean }
  | { readonly type: 'invalid'; readonly code: ChatErrorCode; readonly message: string }

/** As much as the body of `POST /webhook` may have. */
export const CONTENT_BYTES_MAX = 65_536

const invalid = (code: ChatErrorCode, message: string): ClientFrame => ({ type: 'invalid', code, message })

export function parseClientFrame(text: string): ClientFrame {
  const frame = parseObject(text)
  if (!frame) return invalid('INVALID_JSON', 'A message is one JSON object')
  switch (frame.type) {
    case 'message':
      return parseMessage(frame.content)
    case 'abort':
      return { type: 'abort' }
    case 'approval_response':
      return parseApprovalResponse(frame.request_id, frame.decision)
    default:
      return invalid('UNKNOWN_MESSAGE_TYPE', 'type is one of message, abort, approval_response')
  }
}

function parseMessage(content: unknown): ClientFrame {
  if (typeof content !== 'string' || content.trim() === '') return invalid('EMPTY_CONTENT', 'content is a text that is not empty')
  if (!content.isWellFormed()) return invalid('INVALID_JSON', 'content has half a surrogate pair in it')
  if (Buffer.byteLength(content) > CONTENT_BYTES_MAX) return invalid('TOO_LARGE', `content is larger than ${CONTENT_BYTES_MAX} bytes`)
  return { type: 'message', content }
}

function parseApprovalResponse(requestId: unknown, decision: unknown): ClientFrame {
  if (typeof requestId !== 'string' || (decision !== 'approve' && decision !== 'deny')) {
    return invalid('INVALID_APPROVAL_RESPONSE', 'request_id is that of an approval_request, decision is approve or deny')
  }
  return { type: 'approval_response', requestId, approved: decision === 'approve' }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
