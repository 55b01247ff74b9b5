/** Posts and edits messages, adds reactions as buttons, and shows the typing indicator. */
import { BoundedMap, pathSegment } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { type Address, AppError, errorText, type Host, type Inbound, type Outbound, type Sent, sha256Hex } from '@sluice/sdk'
import { explain, type MattermostApi } from './api.ts'
import { buttonProps, legend, type ReactionButton, reactionButtons } from './buttons.ts'
import { isId } from './ids.ts'
import { uploadFiles } from './media.ts'
import { withoutNotifications } from './mentions.ts'

/** Code points; a server whose database is older than version 5 accepts fewer. */
export const TEXT_MAX = 16_383

const BAD_ROOT = 'api.post.create_post.root_id.app_error'
/** Codes of failures after which the post may exist. */
const UNCERTAIN = ['upstream', 'upstream_timeout']
/** The reaction to a message whose turn begins. */
const SEEN = 'eyes'
/** The newest posts among which a post is looked for after such a failure. */
const RECENT = 60
const FIND_MS_MAX = 10_000
export const PROMPTS_MAX = 500
/** The member of a post's `props` that shows which message it is. */
const CLIENT_ID = 'sluice_id'

export class Sender {
  readonly #api: MattermostApi
  readonly #host: Host
  /** The emojis of posts whose buttons can be pressed. */
  readonly #prompts = new BoundedMap<string, readonly string[]>(PROMPTS_MAX)
  #userId: Promise<string> | undefined

  constructor(api: MattermostApi, host: Host) {
    this.#api = api
    this.#host = host
  }

  /** See `Channel.send`. A post whose thread was deleted goes to the channel. */
  async send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    const buttons = reactionButtons(message.buttons)
    const files = message.attachments?.length ? await uploadFiles(this.#api, to.to, message.attachments, signal) : []
    const id = await this.#post(to, message, buttons, files, signal)
    if (buttons.length > 0) await this.#offer(id, buttons, signal)
    return { id }
  }

  /** See `Channel.update`. */
  async update(sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
    const buttons = reactionButtons(message.buttons)
    const path = `/posts/${pathSegment(sent.id)}/patch` as const
    // Version 10 forgets that a post is of a bot when its properties are replaced.
    const props = { ...propsOf(message, buttons), from_bot: 'true' }
    await this.#api.call({ method: 'PUT', path, body: { message: textOf(message, buttons), props }, signal })
    const offered = this.#prompts.get(sent.id)
    if (!offered || buttons.length > 0) return
    this.#prompts.delete(sent.id)
    await this.#withdraw(sent.id, offered, signal)
  }

  /** See `Channel.typing`. */
  async typing({ to, thread }: Address, signal: AbortSignal): Promise<void> {
    const body = { channel_id: to, ...(thread !== undefined && { parent_id: thread }) }
    await this.#api.call({ method: 'POST', path: '/users/me/typing', body, signal })
  }

  /** See `Channel.acknowledge`. The server shows a repeated reaction once. */
  acknowledge({ id }: Inbound, signal: AbortSignal): Promise<void> {
    return this.#react(id, [SEEN], signal)
  }

  async #post(
    { to, thread }: Address,
    message: Outbound,
    buttons: readonly ReactionButton[],
    files: readonly string[],
    signal: AbortSignal,
  ): Promise<string> {
    const body = {
      channel_id: to,
      message: textOf(message, buttons),
      props: propsOf(message, buttons),
      // The server drops a repeat of this id, but only for 30 seconds and on one node.
      pending_post_id: `sluice:${marker(message)}`,
      ...(files.length > 0 && { file_ids: files }),
    }
    const post = (root: object) => this.#api.call({ method: 'POST', path: '/posts', body: { ...body, ...root }, signal, accept: [400] })
    try {
      let answer = await post(thread === undefined ? {} : { root_id: thread })
      if (answer.status === 400 && thread !== undefined && members(answer.json).id === BAD_ROOT) answer = await post({})
      if (answer.status === 400)
        throw new AppError('invalid_request', `mattermost answered 400: ${explain(answer.json) ?? 'no reason given'}`)
      const { id } = members(answer.json)
      if (!isId(id)) throw new AppError('upstream', 'mattermost accepted the message but did not return its id')
      return id
    } catch (error) {
      const found = error instanceof AppError && UNCERTAIN.includes(error.code) ? await this.#find(to, message, signal) : undefined
      if (found === undefined) throw error
      return found
    }
  }

  /** Looks for a post whose answer was lost. Undefined if it is not there, or cannot be looked for. */
  async #find(channel: string, message: Outbound, signal: AbortSignal): Promise<string | undefined> {
    try {
      const path = `/channels/${pathSegment(channel)}/posts?per_page=${RECENT}&skipFetchThreads=true` as const
      const { json } = await this.#api.call({ method: 'GET', path, signal, timeoutMs: FIND_MS_MAX })
      const { order, posts } = members(json)
      const found = list(order)
        .map((id): Members => members(members(posts)[text(id)]))
        .find(({ props }) => members(props)[CLIENT_ID] === marker(message))
      return isId(found?.id) ? found.id : undefined
    } catch {
      return undefined
    }
  }

  /** The prompt can be answered with a keyword, too, so a failure is only logged. */
  async #offer(post: string, buttons: readonly ReactionButton[], signal: AbortSignal): Promise<void> {
    const emojis = buttons.map(({ emoji }) => emoji)
    this.#prompts.set(post, emojis)
    try {
      await this.#react(post, emojis, signal)
    } catch (error) {
      this.#host.log.warn('no reactions could be added as buttons', { channel: 'mattermost', message: post, reason: errorText(error) })
    }
  }

  async #react(post_id: string, emojis: readonly string[], signal: AbortSignal): Promise<void> {
    const user_id = await this.#me(signal)
    for (const emoji_name of emojis) {
      await this.#api.call({ method: 'POST', path: '/reactions', body: { user_id, post_id, emoji_name }, signal })
    }
  }

  async #withdraw(post: string, emojis: readonly string[], signal: AbortSignal): Promise<void> {
    try {
      for (const emoji of emojis) {
        const path = `/users/me/posts/${pathSegment(post)}/reactions/${pathSegment(emoji)}` as const
        await this.#api.call({ method: 'DELETE', path, signal })
      }
    } catch (error) {
      this.#host.log.debug('reactions not removed', { channel: 'mattermost', message: post, reason: errorText(error) })
    }
  }

  #me(signal: AbortSignal): Promise<string> {
    this.#userId ??= this.#readMe(signal).catch((error: unknown) => {
      this.#userId = undefined
      throw error
    })
    return this.#userId
  }

  async #readMe(signal: AbortSignal): Promise<string> {
    return text(members(await this.#api.read('/users/me', signal)).id)
  }
}

const marker = ({ clientId }: Outbound): string => sha256Hex(clientId).slice(0, 32)

const propsOf = (message: Outbound, buttons: readonly ReactionButton[]): object => ({
  [CLIENT_ID]: marker(message),
  ...buttonProps(buttons),
})

function textOf({ text }: Outbound, buttons: readonly ReactionButton[]): string {
  const plain = withoutNotifications(text, TEXT_MAX)
  if (buttons.length === 0) return plain
  const withLegend = `${plain}\n\n${withoutNotifications(legend(buttons), TEXT_MAX)}`
  return [...withLegend].length > TEXT_MAX ? plain : withLegend
}
