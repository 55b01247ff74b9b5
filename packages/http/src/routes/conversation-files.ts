/** `GET /api/sessions/:id/file`: a file that a message of a conversation names, as a download. */
import type { Runtime } from '@sluice/runtime'
import { plainMessage } from '@sluice/runtime/conversations'
import { AppError, defineRoute, type ModelMessage, parseAgentKey, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { contentDisposition } from '../content-disposition.ts'
import { Download } from '../download.ts'
import { MESSAGES_MAX, type Readers, storedOf, unknownSession } from './session-access.ts'

/** The limit of a file; the attachments of channels have the same. */
const FILE_BYTES_MAX = 25 * 1024 * 1024
const PATH_CHARS_MAX = 1000
/** For one address. A conversation with pictures asks for many. */
const CALLS_PER_MINUTE = 240

/** The line of an attachment that a person sent; its path is made from its content. */
const SENT = /^\[(?:Image|Audio|Video|Document): ([^\]\n]{1,120})\] (attachments\/[0-9a-f]{16}\.[a-z0-9]{1,8})(?: .*)?$/gm
/** The marker of a file that the agent returned, as the outbox reads it. */
const RETURNED = /\[(?:IMAGE|PHOTO|AUDIO|VOICE|VIDEO|DOCUMENT|FILE):([^[\]\n]{1,1000})\]/gi

/** A marker with an address names no file of the workspace. */
const ADDRESS = /^[a-z][a-z0-9+.-]*:/i

/** Returns the name of a file as a message gives it; undefined if the message does not name this path. */
function nameIn(message: ModelMessage, path: string): string | undefined {
  const { role, content } = plainMessage(message)
  if (!content.includes(path) || ADDRESS.test(path)) return undefined
  if (role === 'user') for (const [, name, sent] of content.matchAll(SENT)) if (sent === path) return name
  if (role === 'assistant')
    for (const [, returned = ''] of content.matchAll(RETURNED)) if (returned.trim() === path) return path.slice(path.lastIndexOf('/') + 1)
  return undefined
}

function nameOf(messages: readonly ModelMessage[], path: string): string | undefined {
  for (const message of messages.toReversed()) {
    const name = nameIn(message, path)
    if (name !== undefined) return name
  }
  return undefined
}

export const conversationFileRoute = ({ store: { sessions }, workspaceOf }: Runtime, readers: Readers): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sessions/:id/file',
    summary: `Download a file that one of the newest ${MESSAGES_MAX} messages of a session names: an attachment, or a file that the agent returned`,
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
          const file = await workspace.open(path, { bytesMax: FILE_BYTES_MAX })
          return { ...file, headers: { 'content-length': String(file.bytes) } }
        },
      })
    },
  })
