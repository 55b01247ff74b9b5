/** What the mail API answers, as far as it is read. */
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import { historyIdSchema } from './history-id.ts'

const id = v.pipe(v.string(), v.minLength(1))
export const profileAnswer = v.object({ emailAddress: v.pipe(v.string(), v.minLength(1)), historyId: v.optional(historyIdSchema) })
export const watchAnswer = v.object({
  historyId: historyIdSchema,
  expiration: v.pipe(v.union([v.string(), v.number()]), v.transform(Number), v.safeInteger()),
})
export const historyAnswer = v.object({
  historyId: historyIdSchema,
  nextPageToken: v.optional(v.string()),
  history: v.optional(
    v.array(
      v.object({
        id: historyIdSchema,
        messagesAdded: v.optional(v.array(v.object({ message: v.object({ id, labelIds: v.optional(v.array(v.string())) }) })), []),
      }),
    ),
    [],
  ),
})
export const listAnswer = v.object({ messages: v.optional(v.array(v.object({ id })), []), nextPageToken: v.optional(v.string()) })
export const attachmentAnswer = v.object({ data: v.string() })
export const sentAnswer = v.object({ id })
/** What it holds is another matter. */
export const mailAnswer = (mail: string) => v.object({ id: v.literal(mail) })

/** Throws `upstream` for an answer that was fine, and yet not what was asked for. */
export function expected<Schema extends v.GenericSchema>(schema: Schema, json: unknown): v.InferOutput<Schema> {
  const { success, output } = v.safeParse(schema, json)
  if (!success) throw new AppError('upstream', 'The answer of mailpush is not what the mail API answers')
  return output
}
