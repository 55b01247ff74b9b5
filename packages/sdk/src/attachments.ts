/** Where the files of messages are kept in the workspace, and how a message names them. */

export const ATTACHMENTS = 'attachments'

/** The path of an attachment, for larger patterns: named by its content, so that it never means another file. */
export const ATTACHMENT_PATH = String.raw`attachments\/[0-9a-f]{16}\.[a-z0-9]{1,8}`

const NAMED = new RegExp(String.raw`(?<![\w/.-])${ATTACHMENT_PATH}\b`, 'g')

/** Returns the paths of the attachments that a text names. */
export const namedAttachments = (text: string): readonly string[] => [...new Set(text.match(NAMED))]
