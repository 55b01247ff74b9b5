/** The files of messages: how a channel describes them, where they are kept in the workspace, and how a message names them. */

export interface Attachment {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  readonly name: string
  readonly mime?: string
  /** The URL, the platform's id, or the bytes. An inbound attachment is stored as JSON and never holds bytes. */
  readonly source: { readonly url: string } | { readonly id: string } | { readonly bytes: Uint8Array }
  /** The platform's lasting id of an inbound file, where `source` may differ each time that the platform reports the same file. */
  readonly lastingId?: string
}

export const ATTACHMENTS = 'attachments'

/**
 * The path of an attachment, for larger patterns: its owner, and a name made from its content, so that it never means another file.
 * Releases before owners named a file by 16 digits of its hash.
 */
export const ATTACHMENT_PATH = String.raw`attachments\/(?:[a-z0-9_-]{1,120}\/[0-9a-f]{64}|[0-9a-f]{16})\.[a-z0-9]{1,8}`

const NAMED = new RegExp(String.raw`(?<![\w/.-])${ATTACHMENT_PATH}\b`, 'g')

/** Returns the paths of the attachments that a text names. */
export const namedAttachments = (text: string): readonly string[] => [...new Set(text.match(NAMED))]
