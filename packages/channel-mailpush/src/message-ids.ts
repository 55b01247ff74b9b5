/** The ids of mails in a header such as `References`: visible ASCII in angle brackets, so that nothing else can ride along. */
export const messageIds = (text: string): string[] => text.match(/<[\x21-\x3b\x3d\x3f-\x7e]{1,250}>/g) ?? []
