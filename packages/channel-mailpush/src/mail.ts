/** A mail as the API gives it, whole. */
import * as v from 'valibot'
import { historyIdSchema } from './history-id.ts'

export interface MailPart {
  readonly mimeType: string
  readonly filename: string
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly body: { readonly data?: string | undefined; readonly attachmentId?: string | undefined }
  readonly parts: readonly MailPart[]
}

const partSchema: v.GenericSchema<unknown, MailPart> = v.object({
  mimeType: v.optional(v.string(), ''),
  filename: v.optional(v.string(), ''),
  headers: v.optional(v.array(v.object({ name: v.string(), value: v.string() })), []),
  body: v.optional(v.object({ data: v.optional(v.string()), attachmentId: v.optional(v.string()) }), {}),
  parts: v.optional(v.array(v.lazy(() => partSchema)), []),
})

export const mailSchema = v.object({
  id: v.pipe(v.string(), v.minLength(1)),
  threadId: v.pipe(v.string(), v.minLength(1)),
  labelIds: v.optional(v.array(v.string()), []),
  snippet: v.optional(v.string(), ''),
  internalDate: v.optional(v.pipe(v.string(), v.regex(/^\d{1,15}$/))),
  /** When it was last changed. */
  historyId: v.optional(historyIdSchema),
  payload: partSchema,
})

export type Mail = v.InferOutput<typeof mailSchema>

/** Every header of that name, in order, topmost first. */
export const headersOf = ({ headers }: Pick<MailPart, 'headers'>, name: string): string[] =>
  headers.filter((header) => header.name.toLowerCase() === name).map(({ value }) => value.trim())
