"""A person with a Matrix client of its own (matrix-nio with libolm), driven by lines of JSON on standard input."""
import asyncio
import io
import json
import sys
import tempfile

from nio import (AsyncClient, AsyncClientConfig, KeyVerificationKey, KeyVerificationMac, MegolmEvent, RoomEncryptedMedia, RoomMessage, UnknownEvent,
                 UploadResponse)
from nio.crypto import decrypt_attachment


def say(value):
    print(json.dumps(value), flush=True)


def shown(room, event):
    source = event.source
    entry = {'kind': type(event).__name__, 'room': room.room_id, 'id': event.event_id, 'sender': event.sender,
             'body': getattr(event, 'body', None), 'content': source.get('content'),
             'encrypted': bool(getattr(event, 'decrypted', False))}
    return entry


async def main(homeserver, user, password, device, store):
    config = AsyncClientConfig(store_sync_tokens=True, encryption_enabled=True, max_timeouts=5)
    client = AsyncClient(homeserver, user, device_id=device, store_path=store, config=config)
    await client.login(password, device_name='nio')

    async def on_event(room, event):
        entry = shown(room, event)
        if isinstance(event, RoomEncryptedMedia):
            answer = await client.download(mxc=event.url)
            plain = decrypt_attachment(answer.body, event.key['k'], event.hashes['sha256'], event.iv)
            entry['file'] = plain.decode('utf-8', 'replace')
        say({'event': entry})

    async def on_verification(event):
        sas = client.key_verifications[event.transaction_id]
        if isinstance(event, KeyVerificationKey):
            say({'emoji': [name for _, name in sas.get_emoji()], 'flow': event.transaction_id})
        else:
            say({'verified': sas.verified, 'flow': event.transaction_id})

    client.add_to_device_callback(on_verification, (KeyVerificationKey, KeyVerificationMac))
    for kind in (RoomMessage, MegolmEvent, UnknownEvent):
        client.add_event_callback(on_event, kind)
    await client.sync(timeout=0, full_state=True)
    say({'ready': client.device_id, 'fingerprint': client.olm.account.identity_keys['ed25519']})
    syncing = asyncio.ensure_future(client.sync_forever(timeout=10000, loop_sleep_time=0))
    syncing.add_done_callback(lambda task: task.cancelled() or say({'failed': repr(task.exception())}))
    loop = asyncio.get_event_loop()
    while True:
        line = await loop.run_in_executor(None, sys.stdin.readline)
        if line == '':
            break
        command = json.loads(line)
        try:
            if 'file' in command:
                data = command['file'].encode()
                answer, keys = await client.upload(lambda *_: io.BytesIO(data), content_type='text/plain', filename=command['name'],
                                                   encrypt=True, filesize=len(data))
                assert isinstance(answer, UploadResponse), answer
                content = {'msgtype': 'm.file', 'body': command['name'], 'info': {'size': len(data), 'mimetype': 'text/plain'},
                           'file': {**keys, 'url': answer.content_uri}}
            elif 'content' in command:
                content = command['content']
            if 'verify' in command:
                user, device_id = command['verify']
                await client.start_key_verification(client.device_store[user][device_id])
                say({'sent': 'verification', 'nr': command.get('nr')})
                continue
            if 'confirm' in command:
                await client.confirm_short_auth_string(command['confirm'])
                say({'sent': 'confirmation', 'nr': command.get('nr')})
                continue
            if 'redact' in command:
                answer = await client.room_redact(command['room'], command['redact'])
            else:
                answer = await client.room_send(command['room'], command.get('type', 'm.room.message'), content, ignore_unverified_devices=True)
            say({'sent': answer.event_id, 'nr': command.get('nr')})
        except Exception as error:  # The test shows it.
            say({'error': repr(error), 'nr': command.get('nr')})
    syncing.cancel()
    await client.close()


if __name__ == '__main__':
    asyncio.run(main(*sys.argv[1:5], sys.argv[5] if len(sys.argv) > 5 else tempfile.mkdtemp()))
