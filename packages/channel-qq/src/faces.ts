/** Replaces the tags of QQ's faces in a text by their names. */
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'

const FACE = /<faceType=\d{1,4},faceId="([^"<>]{0,40})"(?:,ext="([\w+/=-]{0,2000})")?[^<>]{0,40}>/g

/** A tag without a name becomes the number of the face. */
export const withFaceNames = (content: string): string =>
  content.replace(FACE, (_, id: string, ext: string = '') => {
    const name = text(members(parsedOrUndefined(Buffer.from(ext, 'base64'))).text)
    return `[${name.replace(/^\//, '').trim() || `face ${id}`}]`
  })
