/** Media types (RFC 2046) of attachments. */
import type { Attachment } from '@sluice/sdk/webhook'

/** Returns the kind of an attachment with the media type `mime`; `file` for types that are not images, audio or video. */
export function attachmentKind(mime: string): Attachment['kind'] {
  const [family] = mime.trim().toLowerCase().split('/')
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'file'
}

const TYPES: Readonly<Record<string, string>> = {
  aac: 'audio/aac',
  amr: 'audio/amr',
  bmp: 'image/bmp',
  csv: 'text/csv',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  gif: 'image/gif',
  gz: 'application/gzip',
  heic: 'image/heic',
  htm: 'text/html',
  html: 'text/html',
  ics: 'text/calendar',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  m4a: 'audio/mp4',
  md: 'text/markdown',
  mov: 'video/quicktime',
  mp3: 'audio/mpeg',
  mp4: 'video/mp4',
  oga: 'audio/ogg',
  ogg: 'audio/ogg',
  opus: 'audio/ogg',
  pdf: 'application/pdf',
  png: 'image/png',
  ppt: 'application/vnd.ms-powerpoint',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  svg: 'image/svg+xml',
  tif: 'image/tiff',
  tiff: 'image/tiff',
  txt: 'text/plain',
  log: 'text/plain',
  vcf: 'text/vcard',
  wav: 'audio/wav',
  webm: 'video/webm',
  webp: 'image/webp',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xml: 'text/xml',
  zip: 'application/zip',
}

/** Returns the media type of a file by the end of its name, for platforms that demand one; undefined for an unknown one. */
export function mediaTypeOfName(name: string): string | undefined {
  const end = /\.([A-Za-z\d]{1,5})$/.exec(name)?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(TYPES, end) ? TYPES[end] : undefined
}

/** Returns the media type in a `Content-Type` header, in lower case and without parameters; undefined without one. */
export const mediaType = (headers: Headers): string | undefined =>
  headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() || undefined
