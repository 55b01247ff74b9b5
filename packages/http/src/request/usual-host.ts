/** Recognises a `Host` header as clients usually write it. The application judges every other. */

const HOST = /^[\w.-]+(?::\d+)?$|^\[[\da-fA-F:]+\](?::\d+)?$/

export const isUsualHost = (host: string | undefined): boolean => HOST.test(host ?? '')
