/** The parts of requests to the REST API of a platform: the URL, the segments of its path, and the header with the token. */
import { AppError, type Secret } from '@sluice/sdk'
import { withoutTrailing } from '../text/without-trailing.ts'

/** Returns the URL of a path, which begins with a slash, below the base URL of an API. */
export const urlUnder = (baseUrl: string, path: `/${string}`): string => withoutTrailing(baseUrl, '/') + path

/** Returns the header that authorizes a request with a token, without the white space around the token. */
export const bearer = (token: Secret): { readonly authorization: string } => ({ authorization: `Bearer ${token.reveal().trim()}` })

/** True for a text that can be one segment of a path. In a URL, an empty segment, `.` and `..` would change the others. */
export const isPathSegment = (text: string): boolean => !/^\.{0,2}$/.test(text)

/**
 * Encodes an id as one segment of a path. `encodeURIComponent` alone is not enough, because it leaves `..` as it is, and a URL
 * with `/rooms/../messages` is one with `/messages`. Throws `invalid_request` for a text that cannot be a segment.
 */
export function pathSegment(id: string): string {
  if (!isPathSegment(id)) throw new AppError('invalid_request', `'${id}' cannot be an id in the path of a URL`)
  return encodeURIComponent(id.toWellFormed())
}
