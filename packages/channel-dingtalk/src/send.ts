/**
 * Sends messages: over the session of the message that is answered while DingTalk accepts it, and as a message of the robot
 * afterwards. A reply over the session counts for no quota of API calls.
 */
import { list, type Members, text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Clock, type Outbound, type Sent } from '@sluice/sdk'
import { groupIn, sessionOf } from './address.ts'
import type { DingtalkApi } from './api.ts'
import { titleOf, toMarkdown } from './markdown.ts'
import { uploadFile } from './media.ts'

/** A reply is on its way for a moment. */
const SESSION_MARGIN_MS = 5000

/** Implements `Channel.send`. Each file is a message of its own, after the text. */
export async function sendMessage(api: DingtalkApi, clock: Clock, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const files = await Promise.all((message.attachments ?? []).map((file) => uploadFile(api, file, signal)))
  const sent = message.text === '' ? undefined : await sendText(api, clock, to, message, signal)
  let last = sent
  for (const file of files) {
    last = await asRobot(api, to, file.key, file.param, signal).catch((error: unknown) => {
      // Parts that were sent must not be sent again.
      throw last === undefined
        ? error
        : new AppError('upstream', 'A part of the message was sent to dingtalk, but not all of its files', { cause: error })
    })
  }
  if (!last) throw new AppError('invalid_request', 'The message has neither text nor files')
  return sent ?? last
}

async function sendText(api: DingtalkApi, clock: Clock, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const { session, untilMs } = sessionOf(to)
  if (session !== undefined && clock.nowMs() + SESSION_MARGIN_MS < untilMs) {
    // DingTalk returns no id for such a reply.
    if (await api.reply(session, replyBody(api, to, message.text), signal)) return { id: `reply-${message.clientId}` }
  }
  return asRobot(api, to, 'sampleMarkdown', { title: titleOf(message.text), text: toMarkdown(message.text) }, signal)
}

/** The first part of a reply in a group mentions the sender. Nothing in the text of a model mentions a person. */
function replyBody(api: DingtalkApi, to: Address, plain: string): object {
  const staff = to.more?.staff
  const mentions = api.config.mention_sender && groupIn(to) !== undefined && to.replyTo !== undefined && staff !== undefined
  const body = toMarkdown(plain)
  return {
    msgtype: 'markdown',
    markdown: { title: titleOf(plain), text: mentions ? `@${staff}  \n${body}` : body },
    at: { atUserIds: mentions ? [staff] : [], isAtAll: false },
  }
}

/** Sends a message of the robot, which answers no other. */
async function asRobot(api: DingtalkApi, to: Address, msgKey: string, param: object, signal: AbortSignal): Promise<Sent> {
  const group = groupIn(to)
  const body = { robotCode: api.robotCode, msgKey, msgParam: JSON.stringify(param) }
  const answer =
    group === undefined
      ? await api.call('/v1.0/robot/oToMessages/batchSend', { ...body, userIds: [to.to] }, signal)
      : await api.call('/v1.0/robot/groupMessages/send', { ...body, openConversationId: group }, signal)
  refuseRecipient(answer, to.to)
  const id = text(answer.processQueryKey)
  if (id === '') throw new AppError('upstream', 'dingtalk accepted the message but returned no id for it')
  return { id }
}

/** A message to one person is refused for that person, with status 200. */
function refuseRecipient(answer: Members, person: string): void {
  const isIn = (people: unknown): boolean => list(people).includes(person)
  if (isIn(answer.flowControlledStaffIdList)) throw new AppError('rate_limited', 'dingtalk limits the messages to this person')
  if (isIn(answer.invalidStaffIdList))
    throw new AppError('invalid_request', 'dingtalk knows no person with this user id in the organisation')
  if (isIn(answer.filteredStaffIdList)) throw new AppError('forbidden', 'dingtalk does not let the robot write to this person')
}
