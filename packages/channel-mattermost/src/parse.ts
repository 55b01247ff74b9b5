/** Parses posts, their changes, reactions and files. None of these functions throws or asks the server. */
import { attachmentKind, type ReadMessage } from '@sluice/kit'
import { list, type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { type Attachment, chatCommandIn, forwardedPart, type Inbound, type Thing, thing, thingsPart, unknownThing } from '@sluice/sdk'
import { wordsOfPost } from './attachment-words.ts'
import { pressedValue } from './buttons.ts'
import { isId } from './ids.ts'
import { isMentioned, withoutMention } from './mentions.ts'

/** The bot for which posts are parsed. */
export interface Bot {
  readonly account: string
  readonly userId: string
  readonly username: string
  readonly threadReplies: boolean
}

/** A post with the members that every post has. */
export interface Post {
  readonly id: string
  readonly channel: string
  readonly user: string
  /** Empty for a post that is in no thread, or begins one. */
  readonly root: string
  readonly createdAtMs: number
  /** 0 if the post was never edited or deleted. */
  readonly editedAtMs: number
  readonly deletedAtMs: number
  readonly json: Members
}

/** More files than Mattermost allows in one post. */
const FILES_MAX = 20
/** Reactions of one post that are read after an outage; Mattermost allows 50 different ones. */
const REACTIONS_MAX = 500

/** The types of posts that people write; `me` is that of the command `/me`. */
const TYPES = ['', 'me']
/** The types of posts of the server, such as of a join. */
const OF_SERVER = /^system_/
/** The types of posts of plugins, such as of a call that a person has started. */
const OF_PLUGINS = /^custom_/
/** More previews than Mattermost makes for one post. */
const PREVIEWS_MAX = 20

/** The properties of posts that programs write, also under the name of a person. */
const BY_PROGRAMS = ['from_bot', 'from_webhook']

const milliseconds = (value: unknown): number => (typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0)

/** Returns undefined for JSON that is not a post, and for an earlier version of an edited post. */
export function postOf(json: unknown): Post | undefined {
  const post = members(json)
  const { id, channel_id, user_id } = post
  const createdAtMs = milliseconds(post.create_at)
  if (!isId(id) || !isId(channel_id) || !isId(user_id) || createdAtMs === 0 || text(post.original_id) !== '') return undefined
  return {
    id,
    channel: channel_id,
    user: user_id,
    root: isId(post.root_id) ? post.root_id : '',
    createdAtMs,
    editedAtMs: milliseconds(post.edit_at),
    deletedAtMs: milliseconds(post.delete_at),
    json: post,
  }
}

/** Returns the post in the data of an event, where it is JSON in a text. */
export const postIn = (data: Members): Post | undefined => postOf(parsedOrUndefined(text(data.post)))

/** Parses a post that a person wrote, whether or not it is for the bot. `isDirect` is true in a conversation with the bot alone. */
export function parseMessage({ json, ...post }: Post, bot: Bot, isDirect: boolean): Inbound | undefined {
  const isOfPlugin = OF_PLUGINS.test(text(json.type))
  if (post.user === bot.userId || OF_SERVER.test(text(json.type)) || isByProgram(json)) return undefined
  // A plugin names what a person has done, and its words under the name of the person are not theirs.
  if (!isOfPlugin && isTrue(members(json.props).from_plugin)) return undefined
  const attachments = attachmentsOf(json)
  const things = thingsIn(json)
  const forwarded = forwardOf(json)
  // A mention alone asks about the thread that it is in.
  const message = isOfPlugin ? '' : text(json.message)
  const plain = withoutMention(message, bot.username) || (post.root === '' ? '' : message.trim())
  if (plain === '' && attachments.length === 0 && things.length === 0 && !forwarded.forwarded) return undefined
  return {
    id: post.id,
    account: bot.account,
    sender: post.user,
    // A command opens no thread: a new thread has no turn that the command could be about.
    to: post.root === '' && chatCommandIn(plain) ? { to: post.channel } : replyAddress(post, bot, isDirect),
    text: plain,
    addressed: isDirect ? 'direct' : isMentioned(message, bot.username) ? 'mention' : 'overheard',
    sentAtMs: post.createdAtMs,
    ...(attachments.length > 0 && { attachments }),
    ...thingsPart(things),
    ...forwarded,
  }
}

function thingsIn(post: Members): readonly Thing[] {
  const type = text(post.type)
  if (TYPES.includes(type)) return []
  if (!OF_PLUGINS.test(type)) return [unknownThing(type)]
  const words = text(post.message).trim() || wordsOfPost(post)
  return [type === 'custom_calls' ? thing('call', words) : thing('unknown', type, words)]
}

/**
 * A person forwards a post by a link to it, to which the server adds the post for readers who may see it. Source: `PreviewPost` in
 * https://github.com/mattermost/mattermost/blob/master/server/public/model/permalink.go
 */
function forwardOf({ metadata }: Members): Pick<Inbound, 'forwarded'> {
  const previews = list(members(metadata).embeds)
    .map(members)
    .filter(({ type }) => type === 'permalink')
    .slice(0, PREVIEWS_MAX)
    .map(({ data }) => members(data))
  const posts = previews.map(({ post }) => members(post))
  const name = text(previews[0]?.channel_display_name)
  return forwardedPart({
    author: { name },
    kind: 'room',
    text: posts
      .map(wordsOfPost)
      .filter((words) => words !== '')
      .join('\n\n'),
    attachments: posts.flatMap(attachmentsOf).slice(0, FILES_MAX),
  })
}

/** Returns the content of any post, such as one that begins a thread; undefined for a deleted one. */
export function readPost({ json, user, deletedAtMs }: Post, bot: Bot): ReadMessage | undefined {
  if (deletedAtMs > 0) return undefined
  const isOfBot = user === bot.userId
  // Such a post has the user id of a person who did not write it.
  const isOfOther = !isOfBot && (isByProgram(json) || isTrue(members(json.props).from_plugin))
  const author = { id: isOfOther ? '' : user, name: isOfOther ? text(members(json.props).override_username) : '' }
  return { text: wordsOfPost(json), attachments: attachmentsOf(json), author, isOfBot }
}

/** Parses an edit. Mattermost also reports a post as edited when it is pinned, and plugins edit their posts, such as at the end of a call. */
export function parseEdit(post: Post, bot: Bot, isDirect: boolean): Inbound | undefined {
  const inbound = post.editedAtMs === 0 || OF_PLUGINS.test(text(post.json.type)) ? undefined : parseMessage(post, bot, isDirect)
  return inbound && { ...inbound, id: `edit:${post.id}:${post.editedAtMs}`, changes: { message: post.id, what: 'edited' } }
}

export function parseDeletion(post: Post, bot: Bot, isDirect: boolean): Inbound | undefined {
  if (post.user === bot.userId || OF_SERVER.test(text(post.json.type))) return undefined
  return {
    id: `delete:${post.id}`,
    account: bot.account,
    sender: post.user,
    to: replyAddress(post, bot, isDirect),
    text: '',
    changes: { message: post.id, what: 'deleted' },
  }
}

/** Parses a reaction of a person to a post of the bot that has buttons. */
export function parsePress(reaction: Members, post: Post, bot: Bot, isDirect: boolean): Inbound | undefined {
  const { user_id, emoji_name, post_id, create_at } = reaction
  const value = pressedValue(post.json, text(emoji_name))
  if (!isId(user_id) || user_id === bot.userId || post.user !== bot.userId || post_id !== post.id || value === '') return undefined
  return {
    id: `react:${post.id}:${user_id}:${text(emoji_name)}:${milliseconds(create_at)}`,
    account: bot.account,
    sender: user_id,
    to: replyAddress(post, bot, isDirect),
    text: '',
    sentAtMs: milliseconds(create_at) || post.createdAtMs,
    pressed: { message: post.id, value },
  }
}

/** Returns the reactions that the server sends with a post. */
export const reactionsOf = ({ json }: Post): readonly Members[] =>
  list(members(json.metadata).reactions).slice(0, REACTIONS_MAX).map(members)

/** A thread is named by the post that begins it. In a direct conversation a reply begins none. */
function replyAddress({ channel, root, id }: Pick<Post, 'channel' | 'root' | 'id'>, bot: Bot, isDirect: boolean): Inbound['to'] {
  if (root !== '') return { to: channel, thread: root }
  return bot.threadReplies && !isDirect ? { to: channel, thread: id } : { to: channel }
}

function isByProgram({ props }: Members): boolean {
  const known = members(props)
  return BY_PROGRAMS.some((name) => isTrue(known[name]))
}

const isTrue = (value: unknown): boolean => value === true || value === 'true'

function attachmentsOf(post: Members): readonly Attachment[] {
  const described = list(members(post.metadata).files).map(members)
  return list(post.file_ids)
    .filter(isId)
    .slice(0, FILES_MAX)
    .map((id) => {
      const { name, mime_type } = described.find((file) => file.id === id) ?? {}
      const mime = text(mime_type).split(';')[0]?.trim().toLowerCase() ?? ''
      return { kind: attachmentKind(mime), name: text(name) || id, ...(mime !== '' && { mime }), source: { id } }
    })
}
