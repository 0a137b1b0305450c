// What was asked for once, against how often it took place.

export function checkEffects(lines, terminals, deletedUids) {
  const problems = [];
  const madeBy = new Map();
  for (const { id, uid } of lines('created')) {
    if (uid === undefined) continue;
    if (!madeBy.has(id)) madeBy.set(id, new Set());
    madeBy.get(id).add(uid);
  }
  for (const [id, uids] of madeBy) {
    if (uids.size > 1) problems.push(`${id}: one request made ${uids.size} terminals`);
    for (const uid of uids) {
      if (!terminals.has(uid)) problems.push(`${id}: created, and not on disk`);
    }
  }
  const starts = new Map();
  for (const { uid, requestId } of lines('start')) {
    if (!starts.has(uid)) starts.set(uid, new Map());
    starts.get(uid).set(requestId, new Set());
  }
  for (const { uid, requestId, instance } of lines('started')) {
    if (instance !== undefined) starts.get(uid).get(requestId).add(instance);
  }
  for (const [uid, requests] of starts) {
    const terminal = terminals.get(uid);
    if (!terminal) continue;
    const { id, instance } = terminal.meta;
    for (const [requestId, instances] of requests) {
      if (instances.size > 1) {
        problems.push(`${id}: ${requestId} started instances ${[...instances].join(', ')}`);
      }
    }
    const most = 1 + requests.size;
    if (instance > most) problems.push(`${id}: ${instance} instances by ${most} requests`);
  }
  for (const { id, uid, gone } of lines('deleted')) {
    if (gone && !deletedUids.has(uid)) problems.push(`${id}: deleted, and still on disk`);
  }
  for (const line of lines('mirror')) {
    if (line.different.length > 0) {
      problems.push(`WatchTerminals and ListTerminals differ: ${line.different.join(', ')}`);
    }
  }
  for (const { op, failure, ...rest } of lines('fault')) {
    const { text, ...about } = failure.text ? failure : { text: String(failure) };
    problems.push(`${op} failed: ${JSON.stringify({ ...about, ...rest })} ${text}`);
  }
  problems.push(...lastWords(lines, terminals, 'titled', ({ title }) => ({ title })));
  problems.push(...lastWords(lines, terminals, 'resized', ({ cols, rows }) => ({ cols, rows })));
  return problems;
}

/** What was set last and answered for is on record: each terminal has one driver, which waits for answers. */
function lastWords(lines, terminals, kind, shown) {
  const last = new Map(lines(kind).map((line) => [line.uid, line]));
  return [...last].flatMap(([uid, line]) => {
    const { meta } = terminals.get(uid) ?? {};
    const said = line.columns === undefined ? line : { ...line, cols: line.columns };
    if (!meta || JSON.stringify(shown(meta)) === JSON.stringify(shown(said))) return [];
    return [
      `${meta.id}: ${kind} ${JSON.stringify(shown(said))}, on record ${JSON.stringify(shown(meta))}`,
    ];
  });
}
