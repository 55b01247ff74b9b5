/** The ending of a saved attachment's name: from its media type, else from the name its sender gave it. */

const BY_MIME = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/heic': 'heic',
  'audio/ogg': 'ogg',
  'audio/opus': 'ogg',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/x-m4a': 'm4a',
  'audio/aac': 'aac',
  'audio/amr': 'amr',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/webm': 'webm',
  'audio/flac': 'flac',
  'video/mp4': 'mp4',
  'video/3gpp': '3gp',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'application/pdf': 'pdf',
  'application/json': 'json',
  'application/zip': 'zip',
  'text/plain': 'txt',
  'text/csv': 'csv',
  'text/html': 'html',
  'text/markdown': 'md',
} as const satisfies Record<string, string>

const NAME_ENDING = /\.([a-z0-9]{1,8})$/i

/** Lower-case letters and digits, whatever `name` is; the first of `mimes` that is known counts. */
export function mediaExtension(name: string, ...mimes: readonly (string | undefined)[]): string {
  for (const mime of mimes) {
    const type = mime?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
    if (Object.hasOwn(BY_MIME, type)) return BY_MIME[type as keyof typeof BY_MIME]
  }
  return NAME_ENDING.exec(name)?.[1]?.toLowerCase() ?? 'bin'
}
