/** The shape of the messages that the cloud API of chatapp accepts: these members and no others. */
import * as v from 'valibot'

const TEXT_MAX = 4096
const CAPTION_MAX = 1024
const TYPES = ['text', 'image', 'audio', 'video', 'document'] as const

const text = v.strictObject({
  preview_url: v.boolean(),
  body: v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_MAX, `Param text['body'] must be at most ${TEXT_MAX} characters long.`)),
})

const mediaId = v.pipe(v.string(), v.regex(/^\d+$/))
const caption = v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(CAPTION_MAX, `Param 'caption' is longer than ${CAPTION_MAX}`)))

const message = v.pipe(
  v.strictObject({
    messaging_product: v.literal('whatsapp'),
    recipient_type: v.picklist(['individual', 'group']),
    to: v.optional(v.string()),
    recipient: v.optional(
      v.pipe(v.string(), v.regex(/^[A-Z]{2}\.[A-Za-z0-9.]{1,128}$/, "Param 'recipient' is not a business-scoped user id")),
    ),
    type: v.picklist(['text', 'image', 'audio', 'video', 'document']),
    text: v.optional(text),
    image: v.optional(v.strictObject({ id: mediaId, caption })),
    audio: v.optional(v.strictObject({ id: mediaId })),
    video: v.optional(v.strictObject({ id: mediaId, caption })),
    document: v.optional(v.strictObject({ id: mediaId, caption, filename: v.optional(v.string()) })),
    context: v.optional(v.strictObject({ message_id: v.pipe(v.string(), v.minLength(1)) })),
  }),
  v.check(({ to, recipient }) => (to === undefined) !== (recipient === undefined), "Exactly one of 'to' and 'recipient' is required"),
  v.check(
    (given) => TYPES.every((type) => (given[type] === undefined) === (given.type !== type)),
    'A message has the member of its type and of no other',
  ),
  v.check(
    ({ to, recipient_type }) => recipient_type !== 'individual' || to === undefined || /^\d{7,15}$/.test(to),
    "Param 'to' is not a phone number of digits",
  ),
  v.check(
    ({ to, recipient_type }) => recipient_type !== 'group' || /^[\w+/=-]*[^\d+][\w+/=-]*$/.test(to ?? ''),
    "Param 'to' is not the id of a group",
  ),
)

export type ChatappMessage = v.InferOutput<typeof message>

/** Validates a request body; `problem` is the message of the API's error. */
export function checkMessage(json: unknown): { readonly problem: string } | { readonly message: ChatappMessage } {
  const parsed = v.safeParse(message, json)
  if (parsed.success) return { message: parsed.output }
  const [issue] = parsed.issues
  const path = v.getDotPath(issue)
  return { problem: path ? `${path}: ${issue.message}` : issue.message }
}
