/** Where a request comes from: the provider signs nothing, so a secret in the URL, or in a header a proxy adds, has to do. */
import { AppError, equalTexts, type Raw, type Verified } from '@sluice/sdk'

export function verifyToken({ url, headers }: Raw, secret: string): Verified {
  const tokens = url.searchParams.getAll('token')
  const bearer = /^bearer +([^ ].*)$/is.exec(headers.authorization?.trim() ?? '')?.[1]
  if (tokens.length === 1 && tokens.every((token) => equalTexts(token, secret))) return { by: 'token in the URL' }
  if (bearer !== undefined && equalTexts(bearer, secret)) return { by: 'authorization' }
  const isMissing = tokens.length === 0 && bearer === undefined
  throw new AppError('unauthorized', 'Invalid signature', { cause: isMissing ? 'neither ?token= nor a bearer' : 'the token is wrong' })
}
