/** The content of a message besides its text: one file, or a description of a place, a contact or a sticker. */
import { attachmentKind } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'

/** The members of a message that hold a file, in order of preference: an animation is also sent as a document. */
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
    if (id === '') continue
    // Pictures and recordings may be sent as documents, so their media type decides.
    const sentAs = attachmentKind(mime)
    return { kind: sentAs === 'file' ? kind : sentAs, name: text(file.file_name) || name, ...(mime && { mime }), source: { id } }
  }
  return undefined
}

/** Returns a text for a place, a contact or a sticker, and an empty text for any other message. */
export function describeContent({ location, venue, contact, sticker }: Members): string {
  const place = members(venue)
  const { latitude, longitude } = members(place.location ?? location)
  if (typeof latitude === 'number' && typeof longitude === 'number') {
    const name = joined(text(place.title), text(place.address))
    return `Location: ${name ? `${name} (${latitude}, ${longitude})` : `${latitude}, ${longitude}`}`
  }
  const person = members(contact)
  const description = joined([text(person.first_name), text(person.last_name)].join(' ').trim(), text(person.phone_number))
  return description ? `Contact: ${description}` : text(members(sticker).emoji)
}

/** Returns the largest of the sizes in which a photo is available. */
function largest(sizes: unknown): Members | undefined {
  const area = ({ width, height }: Members): number => (Number(width) || 0) * (Number(height) || 0)
  return list(sizes)
    .map(members)
    .filter(({ file_id: id }) => text(id) !== '')
    .reduce<Members | undefined>((best, size) => (best && area(best) >= area(size) ? best : size), undefined)
}

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(', ')
