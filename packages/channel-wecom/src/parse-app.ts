/** Parses messages of an app's callback; see https://developer.work.weixin.qq.com/document/path/90239. */
import { attachmentKind } from '@sluice/kit/media-type'
import { type Attachment, type Inbound, location, type Thing, thing } from '@sluice/sdk/webhook'

export interface AppParseOptions {
  readonly corpId: string
  readonly agentId: number
}

/** Returns the message, or the pressed button of a card, as a list of one; empty for any other event. */
export function parseApp(elements: ReadonlyMap<string, string>, { corpId, agentId }: AppParseOptions): Inbound[] {
  const get = (name: string): string => elements.get(name) ?? ''
  const sender = get('FromUserName')
  const sentAtMs = timeOf(get('CreateTime'))
  if (sender === '') return []
  const base = {
    account: `${corpId}/${agentId}`,
    sender,
    to: { to: `user:${sender}`, more: { way: 'app' } },
    ...(sentAtMs !== undefined && { sentAtMs }),
  }
  if (get('MsgType') === 'event') return press(get, base)
  const content = contentOf(get)
  const id = get('MsgId')
  if (id === '' || content === undefined) return []
  return [{ id, ...base, to: { ...base.to, replyTo: id }, addressed: 'direct', ...content }]
}

/** `TaskId` is the id that `send.ts` gave to the card. An event has no id of its own. */
function press(get: (name: string) => string, base: Omit<Inbound, 'id' | 'text'>): Inbound[] {
  const [task, value] = [get('TaskId'), get('EventKey')]
  if (get('Event') !== 'template_card_event' || task === '' || value === '') return []
  return [{ ...base, id: `${task}/${base.sender}/${base.sentAtMs ?? 0}`, text: '', pressed: { message: task, value } }]
}

function contentOf(get: (name: string) => string): Pick<Inbound, 'text' | 'attachments' | 'things'> | undefined {
  const type = get('MsgType')
  switch (type) {
    case 'text':
      return get('Content').trim() === '' ? undefined : { text: get('Content').trim() }
    case 'image':
    case 'video':
    case 'voice':
      return fileOf(
        type === 'voice' ? 'audio' : attachmentKind(`${type}/x`),
        get('MediaId'),
        type === 'voice' ? `voice.${get('Format') || 'amr'}` : type,
      )
    case 'file':
      return fileOf('file', get('MediaId'), get('FileName') || get('Title') || 'file')
    case 'location':
      return oneThing(location(get('Location_X'), get('Location_Y'), get('Label')))
    case 'link':
      return oneThing(thing('link', get('Title'), get('Description'), get('Url')))
    default:
      return type === '' ? undefined : oneThing(thing('unknown', type, get('Title'), get('Description'), get('Content')))
  }
}

const oneThing = (one: Thing): Pick<Inbound, 'text' | 'things'> => ({ text: '', things: [one] })

const fileOf = (kind: Attachment['kind'], id: string, name: string): Pick<Inbound, 'text' | 'attachments'> | undefined =>
  id === '' ? undefined : { text: '', attachments: [{ kind, name, source: { id } }] }

function timeOf(secs: string): number | undefined {
  return /^\d{1,11}$/.test(secs) && Number(secs) > 0 ? Number(secs) * 1000 : undefined
}
