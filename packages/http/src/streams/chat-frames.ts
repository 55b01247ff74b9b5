/** The frames of `/ws/chat`, in both directions: one JSON object per text message. */
import { finishReasonSchema } from '@sluice/sdk'
import * as v from 'valibot'

/** The schema of one frame; the description says when it is sent. */
const frame = <const Type extends string, const Entries extends v.ObjectEntries>(type: Type, description: string, entries: Entries) =>
  v.pipe(v.object({ type: v.literal(type), ...entries }), v.readonly(), v.description(description))

const text = v.string()
const number = v.number()

const chatErrorCode = v.picklist([
  'INVALID_JSON',
  'UNKNOWN_MESSAGE_TYPE',
  'EMPTY_CONTENT',
  'INVALID_APPROVAL_RESPONSE',
  'SESSION_QUEUE_FULL',
  'TOO_LARGE',
  'AUTH_ERROR',
  'PROVIDER_ERROR',
  'AGENT_ERROR',
])

export type ChatErrorCode = v.InferOutput<typeof chatErrorCode>

/** Frames that the daemon sends. */
export const chatFrameSchema = v.variant('type', [
  frame('session_start', 'First: the session of this connection', { session_id: text, resumed: v.boolean(), message_count: number }),
  frame('turn_start', 'First of a streamed answer with `stays`: the id of its turn, for `/api/turns/{id}/abort`', { turn_id: text }),
  frame('chunk', 'A piece of the answer', { content: text }),
  frame('thinking', 'A piece of the reasoning of the model before its answer', { content: text }),
  frame('tool_call', 'A tool is called', { id: text, name: text, args: v.unknown() }),
  frame('tool_result', 'A tool call has ended; `id` is the id of its `tool_call`', { id: text, name: text, output: text }),
  frame('gap', 'First of a turn that is followed late: its parts before the next frame are no longer kept', {}),
  frame('done', 'The turn has ended with an answer', {
    full_response: text,
    turn_id: text,
    model: text,
    finish_reason: v.pipe(finishReasonSchema, v.description('`stop`: the answer is complete')),
    input_tokens: number,
    output_tokens: number,
    cost_usd: number,
  }),
  frame('aborted', 'The turn was aborted', { turn_id: v.nullable(text) }),
  frame('approval_request', 'A tool call waits for an `approval_response`', {
    request_id: text,
    run_id: v.pipe(text, v.description('With `step_id`, the key of the approval at `/api/approvals`')),
    step_id: text,
    tool: text,
    arguments_summary: text,
    timeout_secs: number,
  }),
  frame('error', 'A message was refused, or its turn failed', {
    message: text,
    code: chatErrorCode,
    error_code: v.exactOptional(v.pipe(text, v.description('The code of the error as in answers over HTTP'))),
  }),
])

export type ChatFrame = v.InferOutput<typeof chatFrameSchema>

/** Frames that the client sends, for the documentation; `parseClientFrame` parses them and explains errors. */
export const clientFrameSchema = v.variant('type', [
  frame('message', 'A message; its turn runs after the waiting ones', { content: text }),
  frame('abort', 'Aborts the running turn', {}),
  frame('approval_response', 'Answers an `approval_request`', { request_id: text, decision: v.picklist(['approve', 'deny']) }),
])

/** A parsed frame of the client; `invalid` carries the answer to anything else. */
export type ClientFrame =
  | { readonly type: 'message'; readonly content: string }
  | { readonly type: 'abort' }
  | { readonly type: 'approval_response'; readonly requestId: string; readonly approved: boolean }
  | { readonly type: 'invalid'; readonly code: ChatErrorCode; readonly message: string }

/** The same limit as for the body of `POST /webhook`. */
export const CONTENT_BYTES_MAX = 65_536

const invalid = (code: ChatErrorCode, message: string): ClientFrame => ({ type: 'invalid', code, message })

/** Never throws: text that is not a valid frame becomes `invalid`. */
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
