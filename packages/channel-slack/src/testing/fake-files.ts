/** The files of the fake workspace: uploads in three steps, and downloads that require the bot token. */
import type { ProviderReply, ProviderRequest } from '@sluice/testkit/fake-provider'

/** A file as the Web API returns it. */
export interface SlackFile {
  readonly id: string
  readonly name: string
  readonly title: string
  readonly mimetype: string
  readonly size: number
  readonly url_private: string
  readonly url_private_download: string
}

/** The files of the workspace. */
export interface SlackFiles {
  /** Starts an upload; `path` is where the bytes must be posted. */
  reserve(name: string, length: number): { readonly id: string; readonly path: string }
  /** Completes an upload; `undefined` if its bytes were not posted or it is already shared. */
  share(id: string, title: string | undefined): SlackFile | undefined
  info(id: string): SlackFile | undefined
  /** Adds a file of a user. */
  add(file: { readonly name: string; readonly mime: string; readonly bytes: Uint8Array }): SlackFile
  bytes(id: string): Uint8Array | undefined
  /** Answers an upload or a download; `undefined` for any other path. */
  answer(request: ProviderRequest, token: string): ProviderReply | undefined
}

const FILES_MAX = 10_000

/** Creates an empty store; `url` is the address of the server. */
export function createSlackFiles(url: () => string): SlackFiles {
  const files = new Map<string, SlackFile & { readonly isShared: boolean }>()
  const contents = new Map<string, Uint8Array>()

  const keep = (name: string, mimetype: string, size: number): SlackFile => {
    if (files.size >= FILES_MAX) throw new Error('too many files')
    const id = `F${String(files.size + 1).padStart(4, '0')}`
    const address = `${url()}/files-pri/T1-${id}`
    const file = {
      id,
      name,
      title: name,
      mimetype,
      size,
      url_private: `${address}/${name}`,
      url_private_download: `${address}/download/${name}`,
    }
    files.set(id, { ...file, isShared: false })
    return file
  }
  const upload = (id: string, body: Buffer): ProviderReply => {
    const file = files.get(id)
    if (!file || file.isShared || body.length !== file.size) return { status: 400, body: 'bad upload' }
    contents.set(id, body)
    return { status: 200, headers: { 'content-type': 'text/plain' }, body: `OK - ${body.length}` }
  }
  const download = (id: string, isAllowed: boolean): ProviderReply => {
    const bytes = contents.get(id)
    if (!isAllowed) return { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' }, body: '<html>Sign in to Slack</html>' }
    if (!bytes) return { status: 404, body: 'not found' }
    return { status: 200, headers: { 'content-type': files.get(id)?.mimetype ?? '' }, body: bytes }
  }

  return {
    reserve(name, length) {
      const { id } = keep(name, 'application/octet-stream', length)
      return { id, path: `/upload/v1/${id}` }
    },
    share(id, title) {
      const file = files.get(id)
      if (!file || file.isShared || !contents.has(id)) return undefined
      files.set(id, { ...file, title: title ?? file.title, isShared: true })
      return { ...file, title: title ?? file.title }
    },
    info: (id) => files.get(id),
    add({ name, mime, bytes }) {
      const file = keep(name, mime, bytes.length)
      contents.set(file.id, bytes)
      return file
    },
    bytes: (id) => contents.get(id),
    answer({ method, path, headers, body }, token) {
      const [, uploaded] = /^\/upload\/v1\/(\w+)$/.exec(path) ?? []
      const [, wanted] = /^\/files-pri\/T1-(\w+)\//.exec(path) ?? []
      if (method === 'POST' && uploaded !== undefined) return upload(uploaded, body)
      if (method === 'GET' && wanted !== undefined) return download(wanted, headers.get('authorization') === `Bearer ${token}`)
      return undefined
    },
  }
}
