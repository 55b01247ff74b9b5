/** A mail in the format of the mail API. */
import * as v from 'valibot'

export interface MailPart {
  readonly mimeType: string
  readonly filename: string
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly body: { readonly data?: string | undefined; readonly attachmentId?: string | undefined }
  readonly parts: readonly MailPart[]
}

/** Parts nested deeper are ignored, so that a sender cannot overflow the stack. */
const DEPTH_MAX = 30

/** A 64-bit id of a change in the mailbox. The API writes it as text, and pushes write it as a number. */
export const historyIdSchema = v.pipe(
  v.union([v.pipe(v.string(), v.regex(/^\d{1,20}$/)), v.pipe(v.number(), v.safeInteger(), v.minValue(0))]),
  v.transform((value) => BigInt(value)),
)

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
  /** When the API received the mail, in milliseconds since 1970. */
  internalDate: v.optional(v.pipe(v.string(), v.regex(/^\d{1,15}$/))),
  /** The last change of the mail. */
  historyId: v.optional(historyIdSchema),
  payload: partSchema(0),
})

export type Mail = v.InferOutput<typeof mailSchema>

/** Returns undefined for JSON that is not a mail, and for a mail that the parser cannot handle. */
export function parseMail(json: unknown): Mail | undefined {
  try {
    return v.parse(mailSchema, json)
  } catch {
    return undefined
  }
}

/** Returns the values of all headers with a name in lower case, topmost first. */
export const headersOf = ({ headers }: MailPart, name: string): string[] =>
  headers.filter((header) => header.name.toLowerCase() === name).map(({ value }) => value.trim())
