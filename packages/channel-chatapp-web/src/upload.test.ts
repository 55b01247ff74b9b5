import { expect, test } from 'vitest'
import { type UploadOptions, uploadFile } from './upload.ts'

const never = new AbortController().signal

/** Uploads a file when the platform names these hosts. */
async function uploadTo(...hostnames: readonly string[]) {
  const asked: string[] = []
  const hosts = hostnames.map((hostname) => ({ hostname, maxContentLengthBytes: 1 }))
  const sock = { refreshMediaConn: async () => ({ auth: 'x', ttl: 60, hosts, fetchDate: new Date(0) }) } as unknown as UploadOptions['sock']
  const fetch: UploadOptions['fetch'] = async (input) => {
    asked.push(new URL(String(input)).host)
    return Response.json({ url: 'https://mmg.whatsapp.net/f', direct_path: '/f' })
  }
  const file = { kind: 'file' as const, name: 'a.pdf', source: { bytes: Uint8Array.of(1) } }
  const result = await uploadFile({ sock, fetch, scheme: 'https:' }, file, '', never).catch((error: unknown) => error)
  return { asked, result }
}

test('uploads to a host of the platform and skips any other one', async () => {
  expect((await uploadTo('10.0.0.1', 'whatsapp.net.example', 'media-1.cdn.whatsapp.net')).asked).toEqual(['media-1.cdn.whatsapp.net'])
  const { asked, result } = await uploadTo('mmg.whatsapp.net@10.0.0.1', 'localhost/.whatsapp.net')
  expect([asked, result]).toEqual([[], expect.objectContaining({ code: 'unavailable' })])
})
