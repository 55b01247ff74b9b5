/** `POST /api/attachments`: saves a file for a message of a conversation, as the attachments of channels are saved. */
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, type Attachment, defineRoute } from '@sluice/sdk'
import * as v from 'valibot'
import { countedClient, personOf } from '../auth/identity.ts'
import type { FileRequest, FileRoute } from '../middleware/receive-file.ts'
import { base64Bytes } from '../request/base64-member.ts'
import { chosenAgent } from '../request/chosen-agent.ts'

export const ATTACHMENT_BYTES_MAX = 10 * 1024 * 1024
/** Base64 needs a third more, and the JSON around it a little. */
const BODY_BYTES_MAX = Math.ceil(ATTACHMENT_BYTES_MAX / 3) * 4 + 4096
const NAME_CHARS_MAX = 255
/** For one address: files fill the disk. */
const CALLS_PER_MINUTE = 30

const KINDS = ['image', 'audio', 'video'] as const
const kindOf = (mime: string): Attachment['kind'] => KINDS.find((kind) => mime.startsWith(`${kind}/`)) ?? 'file'

export const attachmentRoute = (runtime: Runtime, snapshot: Snapshot): FileRoute => ({
  file: { name: 'data', bytesMax: ATTACHMENT_BYTES_MAX },
  ...defineRoute({
    method: 'POST',
    path: '/api/attachments',
    summary: 'Save a file in the workspace of the agent, for a message. The message then contains `text`',
    auth: 'client',
    callsPerMinute: CALLS_PER_MINUTE,
    bodyBytesMax: BODY_BYTES_MAX,
    body: v.object({
      name: v.pipe(v.string(), v.minLength(1), v.maxLength(NAME_CHARS_MAX)),
      mime: v.optional(v.pipe(v.string(), v.maxLength(NAME_CHARS_MAX), v.description('The media type, such as `image/png`')), ''),
      data: v.pipe(v.string(), v.description(`The bytes in Base64; at most ${ATTACHMENT_BYTES_MAX} bytes`)),
      agent: v.exactOptional(
        v.pipe(v.string(), v.description('The agent of the conversation; default: `main`. Only an operator may name one')),
      ),
    }),
    answers: {
      200: {
        description: 'It is saved',
        schema: v.object({
          text: v.pipe(
            v.string(),
            v.description('The line by which a message names the file; the words of a recording where they are transcribed'),
          ),
          kind: v.picklist(['image', 'audio', 'video', 'file']),
          bytes: v.number(),
        }),
      },
    },
    async handle(request) {
      const { name, mime, data, agent } = request.body
      const { file } = request as FileRequest
      const bytes = file ?? base64Bytes(data, 'data')
      if (bytes.length > ATTACHMENT_BYTES_MAX) throw new AppError('too_large', `The file is larger than ${ATTACHMENT_BYTES_MAX} bytes`)
      const chosen = chosenAgent(agent, 'agent', request, snapshot)
      const workspace = runtime.workspaceOf(chosen)
      if (!workspace) throw new AppError('unavailable', `The agent '${chosen}' has no workspace now`)
      const { lineOfMedia } = await import('@sluice/delivery/media')
      const kind = kindOf(mime)
      const { log, clock, people, shares } = runtime
      const owner = personOf(request.device)
      const client = countedClient(people, owner, request.role)
      const { line, error } = await lineOfMedia(
        { kind, name, ...(mime !== '' && { mime }) },
        { bytes },
        {
          channel: { name: 'api' },
          workspace,
          keep: { owner, ...shares.ofFiles(client, owner) },
          transcribe: snapshot.service('transcribe'),
          log,
          clock,
          signal: request.signal,
        },
      )
      if (error !== undefined) throw error
      return { text: line, kind, bytes: bytes.length }
    },
  }),
})
