/** What a message says, besides its text: files, and what a person would say of a place or a contact. */

import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'

/** The kinds of a file a message can hold one of, in the order they are looked for; an animation comes as a document, too. */
const FILES = [
  ['voice', 'audio', 'voice.ogg'],
  ['audio', 'audio', 'audio.mp3'],
  ['animation', 'video', 'animation.mp4'],
  ['video', 'video', 'video.mp4'],
  ['video_note', 'video', 'video.mp4'],
  ['document', 'file', 'document'],
] as const satisfies readonly (readonly [member: string, kind: Attachment['kind'], name: string])[]

export function attachmentOf(message: Members): Attachment | undefined {
  const photo = largest(message.photo)
  if (photo) return { kind: 'image', name: 'photo.jpg', mime: 'image/jpeg', source: { id: text(photo.file_id) } }
  for (const [member, kind, name] of FILES) {
    const file = members(message[member])
    const id = text(file.file_id)
    const mime = text(file.mime_type)
    if (id !== '') return { kind: kindOf(mime) ?? kind, name: text(file.file_name) || name, ...(mime && { mime }), source: { id } }
  }
  return undefined
}

/** Empty for a message that says nothing so, such as one of the service. */
export function wordsOf({ location, venue, contact, sticker }: Members): string {
  const place = members(venue)
  const { latitude, longitude } = members(place.location ?? location)
  if (typeof latitude === 'number' && typeof longitude === 'number') {
    const name = joined(text(place.title), text(place.address))
    return `Location: ${name ? `${name} (${latitude}, ${longitude})` : `${latitude}, ${longitude}`}`
  }
  const person = members(contact)
  const who = joined([text(person.first_name), text(person.last_name)].join(' ').trim(), text(person.phone_number))
  return who ? `Contact: ${who}` : text(members(sticker).emoji)
}

/** Pictures and recordings may be sent as documents. */
function kindOf(mime: string): Attachment['kind'] | undefined {
  const [family] = mime.split('/')
  return family === 'image' || family === 'audio' || family === 'video' ? family : undefined
}

/** Of the sizes a photo comes in. */
function largest(sizes: unknown): Members | undefined {
  const area = ({ width, height }: Members): number => (Number(width) || 0) * (Number(height) || 0)
  return list(sizes)
    .map(members)
    .filter(({ file_id: id }) => text(id) !== '')
    .reduce<Members | undefined>((best, size) => (best && area(best) >= area(size) ? best : size), undefined)
}

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(', ')
