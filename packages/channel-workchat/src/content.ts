/** The content of messages, by their type: text, rich text, and files. */
import { list, type Members, members, parsedOrUndefined, text, textAt, wordsIn } from '@sluice/kit/foreign-json'
import { type Attachment, location, type Thing, thing } from '@sluice/sdk/webhook'

export interface Content {
  /** With placeholders such as `@_user_1` in the place of mentions. */
  readonly text: string
  readonly attachments: readonly Attachment[]
  readonly things?: readonly Thing[]
  /** True for messages of others that the sender passes on. */
  readonly isForwarded?: true
  /** The language that the content itself names, such as `zh_cn`. */
  readonly locale?: string
}

/** More files than the platform accepts in one rich text. */
const FILES_MAX = 50
const NOTHING: Content = { text: '', attachments: [] }
/** The type of messages that a person passes on together. */
export const MERGED_TYPE = 'merge_forward'
/** The words of such a message in an event, which has none of the messages in it. */
export const MERGED = `[${MERGED_TYPE}]`
/** Messages about the conversation itself. */
const IGNORED = ['system', '']

/** Returns the content of a message; undefined for a type other than a message of a person. `id` is the id of the message. */
export function contentOf(type: string, json: string, id: string): Content | undefined {
  if (IGNORED.includes(type)) return undefined
  const content = members(parsedOrUndefined(json))
  const file = (kind: Attachment['kind'], key: string, more: { name?: string; mime?: string } = {}): Content => {
    const { name = '', ...rest } = more
    return key === '' ? NOTHING : { text: '', attachments: [{ kind, name: name || key, source: { id: sourceId(id, kind, key) }, ...rest }] }
  }
  switch (type) {
    case 'text':
      return { text: text(content.text), attachments: [] }
    case 'post':
      return postOf(content, id)
    case 'image':
      return file('image', text(content.image_key))
    case 'file':
      return file('file', text(content.file_key), { name: text(content.file_name) })
    case 'audio':
      // A voice message is Opus in an Ogg container.
      return file('audio', text(content.file_key), { mime: 'audio/ogg' })
    case 'media':
      return file('video', text(content.file_key), { name: text(content.file_name) })
    case 'location':
      return things(location(content.latitude, content.longitude, text(content.name)))
    case 'sticker':
      return things(thing('sticker', ''))
    case 'todo':
    case 'vote':
    case 'calendar':
    case 'share_calendar_event':
    case 'general_calendar':
    case 'hongbao':
    case 'video_chat':
    case 'share_chat':
    case 'share_user':
    case 'folder':
      return things(thing(KINDS[type], wordsIn(content)))
    case MERGED_TYPE:
      return { text: MERGED, attachments: [], isForwarded: true }
    // A card is of a program, and a person can only pass it on.
    case 'interactive':
      return { text: wordsIn(content) || `[${type}]`, attachments: [], isForwarded: true }
    default:
      return things(thing('unknown', type, wordsIn(content)))
  }
}

const KINDS = {
  todo: 'checklist',
  vote: 'poll',
  calendar: 'event',
  share_calendar_event: 'event',
  general_calendar: 'event',
  hongbao: 'payment',
  video_chat: 'call',
  share_chat: 'contact',
  share_user: 'contact',
  folder: 'unknown',
} as const satisfies Record<string, Thing['kind']>

const things = (...found: readonly Thing[]): Content => ({ text: '', attachments: [], things: found })

/** The id of a file: the data with which the platform finds it. */
export const sourceId = (message: string, kind: Attachment['kind'], key: string): string =>
  `${message}/${kind === 'image' ? 'image' : 'file'}/${key}`

/** Rich text arrives without a language, and in the history of some messages below one, such as `{"zh_cn": {…}}`. */
function postOf(content: Members, id: string): Content {
  const [locale = ''] = Array.isArray(content.content) ? [] : Object.keys(content)
  const post = locale === '' ? content : members(content[locale])
  const attachments: Attachment[] = []
  const lines = list(post.content).map((line) =>
    list(line)
      .map((element) => elementText(members(element), id, attachments))
      .join(''),
  )
  const all = [text(post.title), ...lines].join('\n').trim()
  return { text: all, attachments: attachments.slice(0, FILES_MAX), ...(/^[a-z]{2}_[a-z]{2}$/i.test(locale) && { locale }) }
}

/** Returns the text of an element, and adds its file. */
function elementText(element: Members, id: string, attachments: Attachment[]): string {
  const [tag, plain] = [text(element.tag), text(element.text)]
  if (tag === 'a') return plain === text(element.href) ? plain : `${plain} (${text(element.href)})`
  if (tag === 'at') return textAt(element, 'user_id', 'user_name')
  if (tag === 'emotion') return `[${text(element.emoji_type)}]`
  if (tag === 'code_block') return `\n\`\`\`${text(element.language).toLowerCase()}\n${plain}\n\`\`\`\n`
  if (tag === 'hr') return '---'
  const [kind, key] = tag === 'img' ? (['image', text(element.image_key)] as const) : (['video', text(element.file_key)] as const)
  if ((tag === 'img' || tag === 'media') && key !== '') attachments.push({ kind, name: key, source: { id: sourceId(id, kind, key) } })
  return plain
}
