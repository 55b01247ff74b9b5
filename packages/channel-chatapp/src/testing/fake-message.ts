/** The shape of the messages that the cloud API of chatapp accepts: these members and no others. */
import * as v from 'valibot'

const TEXT_MAX = 4096
const CAPTION_MAX = 1024
const TYPES = ['text', 'image', 'audio', 'video', 'document', 'interactive'] as const

const text = v.strictObject({
  preview_url: v.boolean(),
  body: v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_MAX, `Param text['body'] must be at most ${TEXT_MAX} characters long.`)),
})

/** Source: https://developers.facebook.com/docs/whatsapp/cloud-api/messages/interactive-reply-buttons-messages */
const interactive = v.strictObject({
  type: v.literal('button'),
  body: v.strictObject({ text: v.pipe(v.string(), v.minLength(1), v.maxLength(1024, 'Interactive body text is longer than 1024')) }),
  action: v.strictObject({
    buttons: v.pipe(
      v.array(
        v.strictObject({
          type: v.literal('reply'),
          reply: v.strictObject({
            id: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
            title: v.pipe(v.string(), v.minLength(1), v.maxLength(20, 'Button title length invalid. Min length: 1, Max length: 20')),
          }),
        }),
      ),
      v.minLength(1),
      v.maxLength(3, 'Invalid buttons count. Min allowed buttons: 1, Max allowed buttons: 3'),
      v.check((buttons) => new Set(buttons.map(({ reply }) => reply.id)).size === buttons.length, 'Duplicated reply ids'),
    ),
  }),
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
    type: v.picklist(TYPES),
    text: v.optional(text),
    image: v.optional(v.strictObject({ id: mediaId, caption })),
    audio: v.optional(v.strictObject({ id: mediaId })),
    video: v.optional(v.strictObject({ id: mediaId, caption })),
    document: v.optional(v.strictObject({ id: mediaId, caption, filename: v.optional(v.string()) })),
    interactive: v.optional(interactive),
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

/** The receipt that also shows the typing indicator. Source: https://developers.facebook.com/docs/whatsapp/cloud-api/typing-indicators */
const receipt = v.strictObject({
  messaging_product: v.literal('whatsapp'),
  status: v.literal('read'),
  message_id: v.pipe(v.string(), v.startsWith('wamid.')),
  typing_indicator: v.optional(v.strictObject({ type: v.literal('text') })),
})

export const receiptIn = (json: unknown): v.InferOutput<typeof receipt> | undefined => {
  const parsed = v.safeParse(receipt, json)
  return parsed.success ? parsed.output : undefined
}

export type ChatappMessage = v.InferOutput<typeof message>

/** Validates a request body; `problem` is the message of the API's error. */
export function checkMessage(json: unknown): { readonly problem: string } | { readonly message: ChatappMessage } {
  const parsed = v.safeParse(message, json)
  if (parsed.success) return { message: parsed.output }
  const [issue] = parsed.issues
  const path = v.getDotPath(issue)
  return { problem: path ? `${path}: ${issue.message}` : issue.message }
}
