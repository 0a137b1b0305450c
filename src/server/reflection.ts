/** Server reflection: tells any client what services there are and how their messages look. */
import type { DescFile } from '@bufbuild/protobuf';
import { toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Server, ServerDuplexStream } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { service as healthService } from 'grpc-health-check';
import { file_google_rpc_error_details } from '../gen/public/google/rpc/error_details_pb.js';

type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];

/**
 * Answers for these files and all that they import, for the details of errors, which no file imports,
 * and for the standard health service.
 */
export function addReflection(server: Server, files: readonly DescFile[]): void {
  const fileDescriptorProtos = withImports([...files, file_google_rpc_error_details]).map((file) =>
    Buffer.from(toBinary(FileDescriptorProtoSchema, file.proto)),
  );
  // Of a package definition, as proto-loader makes it, nothing but the descriptors is looked at; the
  // health service comes with its own, which the types of grpc-js do not show.
  const health: object = healthService;
  const definitions: unknown = {
    grantty: { fileDescriptorProtos },
    ...('Check' in health && Object(health.Check)),
  };
  new ReflectionService(definitions as PackageDefinition).addToServer(paced(server));
}

type Answering = ServerDuplexStream<unknown, unknown>;

/**
 * The service answers as fast as it is asked, whether or not the answers are read: here questions wait
 * while answers do.
 */
function paced(server: Server): Server {
  const addService: Server['addService'] = (service, implementation) => {
    const handlers = Object.entries(implementation).map(([name, handler]) => {
      const answer = handler as (stream: Answering) => void;
      return [name, (stream: Answering) => answer(waitingForRoom(stream))] as const;
    });
    server.addService(service, Object.fromEntries(handlers));
  };
  return Object.assign(Object.create(server), { addService });
}

function waitingForRoom(stream: Answering): Answering {
  const write = stream.write.bind(stream);
  return Object.assign(stream, {
    write: (answer: unknown) => {
      const hasRoom = write(answer);
      if (!hasRoom) {
        stream.pause();
        stream.once('drain', () => stream.resume());
      }
      return hasRoom;
    },
  });
}

/** Each file once, after those that it imports. */
function withImports(files: readonly DescFile[]): readonly DescFile[] {
  const all = new Set<DescFile>();
  const add = (file: DescFile): void => {
    if (all.has(file)) return;
    for (const imported of file.dependencies) add(imported);
    all.add(file);
  };
  for (const file of files) add(file);
  return [...all];
}
