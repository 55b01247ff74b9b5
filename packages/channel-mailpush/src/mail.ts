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

/** Parts nested deeper are not looked at: a stranger may nest them until no stack can follow. */
const DEPTH_MAX = 30

const partSchema = (depth: number): v.GenericSchema<unknown, MailPart> =>
  v.object({
    mimeType: v.optional(v.string(), ''),
    filename: v.optional(v.string(), ''),
    headers: v.optional(v.array(v.object({ name: v.string(), value: v.string() })), []),
    body: v.optional(v.object({ data: v.optional(v.string()), attachmentId: v.optional(v.string()) }), {}),
    parts:
      depth < DEPTH_MAX
        ? v.optional(v.array(partSchema(depth + 1)), [])
        : v.pipe(
            v.unknown(),
            v.transform(() => []),
          ),
  })

export const mailSchema = v.object({
  id: v.pipe(v.string(), v.minLength(1)),
  threadId: v.pipe(v.string(), v.minLength(1)),
  labelIds: v.optional(v.array(v.string()), []),
  snippet: v.optional(v.string(), ''),
  internalDate: v.optional(v.pipe(v.string(), v.regex(/^\d{1,15}$/))),
  /** When it was last changed. */
  historyId: v.optional(historyIdSchema),
  payload: partSchema(0),
})

export type Mail = v.InferOutput<typeof mailSchema>

/** Undefined for what is no mail, or cannot be taken apart. */
export function parseMail(json: unknown): Mail | undefined {
  try {
    return v.parse(mailSchema, json)
  } catch {
    return undefined
  }
}

/** Every header of that name, in order, topmost first. */
export const headersOf = ({ headers }: Pick<MailPart, 'headers'>, name: string): string[] =>
  headers.filter((header) => header.name.toLowerCase() === name).map(({ value }) => value.trim())
