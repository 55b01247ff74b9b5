/** `GET /api/sessions/:id/file`: a file that a message of a conversation names, as a download. */
import type { Runtime } from '@sluice/runtime'
import { plainMessage } from '@sluice/runtime/conversations'
import {
  AppError,
  ATTACHMENT_PATH,
  answerFilesIn,
  defineRoute,
  fileOwnerOfSession,
  type ModelMessage,
  markedFiles,
  parseAgentKey,
  type Route,
} from '@sluice/sdk'
import * as v from 'valibot'
import { contentDisposition } from '../answers/content-disposition.ts'
import { Download } from '../answers/download.ts'
import { MESSAGES_MAX, type Readers, storedOf, unknownSession } from './session-access.ts'

/** The limit of a file; the attachments of channels have the same. */
const FILE_BYTES_MAX = 25 * 1024 * 1024
const PATH_CHARS_MAX = 1000
/** For one address. A conversation with pictures asks for many. */
const CALLS_PER_MINUTE = 240

/** The line of an attachment that a person sent; its path is made from its content. */
const SENT = new RegExp(String.raw`^\[(?:Image|Audio|Video|Document): ([^\]\n\r\u2028\u2029]{1,120})\] (${ATTACHMENT_PATH})(?: .*)?$`, 'gm')

/** Returns the name of a file as a message of the person gives it; undefined if the message does not name this path. */
function sentName(message: ModelMessage, path: string): string | undefined {
  if (message.role !== 'user') return undefined
  for (const [, name, sent] of plainMessage(message).content.matchAll(SENT)) if (sent === path) return name
  return undefined
}

/** Tells whether the agent returned this file in the message at `at`, and its turn attached it. */
function isReturned(messages: readonly ModelMessage[], at: number, path: string): boolean {
  const message = messages[at]
  if (message?.role !== 'assistant' || !markedFiles(plainMessage(message).content).includes(path)) return false
  // Text in a message with calls is not an answer: its files were neither judged nor sent.
  if (messages[at + 1]?.role === 'tool') return false
  const { marked } = answerFilesIn(message)
  return marked ? marked.some((file) => file.path === path && file.refusal === undefined) : isNamedByCall(messages, at, path)
}

/** A message of an earlier release does not say which files it attached. It attached the files that a call of its turn names in its input or its result. */
function isNamedByCall(messages: readonly ModelMessage[], at: number, path: string): boolean {
  const asked = messages.findLastIndex(({ role }, index) => index < at && role === 'user')
  return messages.slice(asked + 1, at + 1).some((message) => {
    const { tool_calls = [], tool_results = [] } = plainMessage(message)
    return JSON.stringify([tool_calls, tool_results]).includes(JSON.stringify(path).slice(1, -1))
  })
}

function nameOf(messages: readonly ModelMessage[], path: string): string | undefined {
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]
    const name = message && sentName(message, path)
    if (name !== undefined) return name
    if (isReturned(messages, at, path)) return path.slice(path.lastIndexOf('/') + 1)
  }
  return undefined
}

export const conversationFileRoute = ({ store: { sessions }, workspaceOf }: Runtime, readers: Readers): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sessions/:id/file',
    summary: `Download a file that one of the newest ${MESSAGES_MAX} messages of a session names: an attachment, or a file that the agent attached`,
    auth: 'client',
    callsPerMinute: CALLS_PER_MINUTE,
    mediaType: 'application/octet-stream',
    query: v.object({ path: v.pipe(v.string(), v.minLength(1), v.maxLength(PATH_CHARS_MAX)) }),
    answers: { 200: { description: `Its bytes, at most ${FILE_BYTES_MAX}` } },
    async handle({ by, device, role, onControlSocket, params, query: { path } }) {
      const id = storedOf({ device, role }, params)
      if (!(await sessions.get(id))) throw unknownSession()
      await readers.note({ by, device, onControlSocket }, id)
      const history = await sessions.history(id, MESSAGES_MAX)
      const name = nameOf(history, path)
      if (name === undefined) throw new AppError('not_found', 'None of the newest messages of this session names such a file')
      const { agent } = parseAgentKey(id)
      const workspace = workspaceOf(agent)
      if (!workspace) throw new AppError('unavailable', `The agent '${agent}' has no workspace now`)
      return new Download({
        // A browser saves it and shows nothing of it, whatever it contains.
        headers: { 'content-type': 'application/octet-stream', 'content-disposition': contentDisposition(name) },
        async open() {
          const caller = { owner: fileOwnerOfSession(id), session: id, isOperator: role === 'operator' }
          const file = await workspace.as({ caller }).open(path, { bytesMax: FILE_BYTES_MAX })
          return { ...file, headers: { 'content-length': String(file.bytes) } }
        },
      })
    },
  })
