/** Where the files of messages are kept in the workspace, and how a message names them. */

export const ATTACHMENTS = 'attachments'

/**
 * The path of an attachment, for larger patterns: its owner, and a name made from its content, so that it never means another file.
 * Releases before owners named a file by 16 digits of its hash.
 */
export const ATTACHMENT_PATH = String.raw`attachments\/(?:[a-z0-9_-]{1,120}\/[0-9a-f]{64}|[0-9a-f]{16})\.[a-z0-9]{1,8}`

const NAMED = new RegExp(String.raw`(?<![\w/.-])${ATTACHMENT_PATH}\b`, 'g')

/** Returns the paths of the attachments that a text names. */
export const namedAttachments = (text: string): readonly string[] => [...new Set(text.match(NAMED))]
