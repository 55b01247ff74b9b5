/** Reads messages that are neither text, file, place nor contact: their words, under the names that the protocol has for them. */
import { poll, type Thing, type ThingKind, thing, unknownThing } from '@sluice/sdk'
import type { proto } from '@whiskeysockets/baileys'

export interface OtherContent {
  /** The sender's own words, or words that the sender passes on. */
  readonly text?: string
  readonly things?: readonly Thing[]
  readonly context?: proto.IContextInfo | null | undefined
  /** True for messages that only programs write, and people pass on. */
  readonly isOfProgram?: true
}

/** Members that carry keys, acknowledgements, updates between devices and the number of pictures in an album, and no message of a person. */
const IGNORED =
  /^(?:senderKeyDistributionMessage|messageContextInfo|albumMessage|protocolMessage|reactionMessage|encReactionMessage|pollUpdateMessage|keepInChatMessage|pinInChatMessage|deviceSentMessage|fastRatchetKeySenderKeyDistributionMessage|chat|stickerSyncRmrMessage|secretEncryptedMessage|encCommentMessage|encEventResponseMessage|callLogMesssage|initialSecurityNotificationSettingSync|extendedTextMessage|conversation)$/

/** Messages that programs of businesses and of the platform write. */
const OF_PROGRAMS = /^(?:interactiveMessage|templateMessage|buttonsMessage|listMessage|highlyStructuredMessage|richResponseMessage)$/
/** Answers to a question in a status or in a channel. */
const ANSWERS = ['questionResponseMessage', 'statusQuestionAnswerMessage'] as const
const KINDS: Readonly<Record<string, ThingKind>> = {
  groupInviteMessage: 'link',
  newsletterAdminInviteMessage: 'link',
  newsletterFollowerInviteMessageV2: 'link',
  productMessage: 'link',
  orderMessage: 'payment',
  sendPaymentMessage: 'payment',
  requestPaymentMessage: 'payment',
  invoiceMessage: 'payment',
  scheduledCallCreationMessage: 'call',
  stickerPackMessage: 'sticker',
  pollResultSnapshotMessage: 'poll',
  pollResultSnapshotMessageV3: 'poll',
  interactiveResponseMessage: 'form',
  eventMessage: 'event',
}

/** A message that WhatsApp gives to phones only, such as one to be viewed once. */
const ONLY_ON_PHONE = 'one that WhatsApp shows only on the phone, such as a picture to be viewed once'

/** Undefined for messages that need no answer. */
export function otherContent(message: proto.IMessage): OtherContent | undefined {
  const { pollCreationMessage, pollCreationMessageV2, pollCreationMessageV3, pollCreationMessageV5 } = message
  const asked = pollCreationMessage ?? pollCreationMessageV2 ?? pollCreationMessageV3 ?? pollCreationMessageV5
  if (asked) {
    const choices = (asked.options ?? []).map(({ optionName }) => optionName ?? '')
    return { things: [poll(asked.name ?? '', choices)], context: asked.contextInfo }
  }
  const answer = ANSWERS.map((member) => message[member]?.text ?? '').find((text) => text.trim() !== '')
  if (answer !== undefined) return { text: answer }
  for (const [member, value] of Object.entries(message)) {
    if (typeof value !== 'object' || value === null || IGNORED.test(member)) continue
    const context = contextOf(value)
    const words = wordsIn(value)
    if (OF_PROGRAMS.test(member)) return { text: words.join('\n') || `[${member}]`, context, isOfProgram: true }
    if (member === 'placeholderMessage') return { things: [unknownThing(ONLY_ON_PHONE)] }
    const kind = KINDS[member]
    return { things: [kind === undefined ? unknownThing([member, ...words].join(', ')) : thing(kind, ...words)], context }
  }
  return undefined
}

const contextOf = (value: object): proto.IContextInfo | null | undefined =>
  (value as { readonly contextInfo?: proto.IContextInfo | null }).contextInfo

/** The members that hold words for people. */
const WORDS =
  /^(?:text|conversation|title|subtitle|name|groupName|newsletterName|orderTitle|body|message|description|caption|note|address|publisher|optionName|displayText|rowTitle|paramsJson|\w+Text)$/
/** Members that hold the message which is answered, or addresses and names of the platform. */
const WITHOUT_WORDS = ['contextInfo', 'nativeFlowMessage', 'quotedMessage', 'hydratedButtons']
const WORDS_MAX = 200
const DEPTH_MAX = 8

function wordsIn(content: object): readonly string[] {
  const found: string[] = []
  const visit = (value: unknown, depth: number): void => {
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array || depth > DEPTH_MAX) return
    for (const [member, inner] of Object.entries(value)) {
      if (found.length >= WORDS_MAX || WITHOUT_WORDS.includes(member)) continue
      if (typeof inner !== 'string') visit(inner, depth + 1)
      else if (WORDS.test(member) && inner.trim() !== '') found.push(inner)
    }
  }
  visit(content, 0)
  return found
}
